-- oldest program 72
-- Programs since then say of which schema they are.
DROP FUNCTION IF EXISTS join_nodes(text, text, double precision, boolean);
