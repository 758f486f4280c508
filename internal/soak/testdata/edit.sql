-- Replaces a piece of one function's text; it must be there.
CREATE OR REPLACE FUNCTION pg_temp.edit(named regproc, original text, fault text) RETURNS void
LANGUAGE plpgsql AS $edit$
DECLARE
    before text := pg_get_functiondef(named);
BEGIN
    IF position(original IN before) = 0 THEN
        RAISE EXCEPTION 'function % does not contain: %', named, original;
    END IF;
    EXECUTE replace(before, original, fault);
END
$edit$;
