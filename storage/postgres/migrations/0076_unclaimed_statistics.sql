-- oldest program 75
-- Programs since then say under which lease they hold the statistics that they save.
DROP FUNCTION IF EXISTS save_statistics(jsonb);
