-- oldest program 80
-- Programs since 72 say of which schema they are, since 75 under which lease they hold the
-- statistics that they save, since 78 they give what fetches found as rows, and since 80
-- they say how many attempts are kept; what they retry because somebody asked is ahead of
-- its schedule.
DROP FUNCTION IF EXISTS join_nodes(text, text, double precision, boolean);
DROP FUNCTION IF EXISTS save_statistics(jsonb);
DROP FUNCTION IF EXISTS
    run_in_lane(bigint, text, bigint, bigint, jsonb), commit_news(jsonb),
    has_records(jsonb), count_of_records(jsonb), outcomes_of(jsonb[]),
    require_same_audience(jsonb[], bigint), with_allowed_matches(jsonb),
    assign_positions(jsonb[]), put_feeds(jsonb[]), put_what_is_rare(bigint, jsonb),
    put_documents(jsonb[]), put_bodies(jsonb[], bigint[]),
    put_entries(jsonb[], bigint[], text), append_records(jsonb[], bigint[]),
    placed_units(jsonb[], bigint[]),
    commit_quiet(bigint[], bigint[], bigint[], bigint[], bytea[], bytea[], bigint[],
        bigint[], double precision[], double precision[], double precision[], bigint[],
        bytea[], text[]);
DROP FUNCTION IF EXISTS trim_attempts(bigint, bigint);
DROP FUNCTION IF EXISTS retry_now(bigint, bigint);
