-- Every change of a turn's state or attempt, for the judge.
CREATE TABLE soak_steps (
    id           bigint GENERATED ALWAYS AS IDENTITY,
    turn_id      bigint NOT NULL,
    from_state   text NOT NULL,
    to_state     text NOT NULL,
    from_attempt integer NOT NULL,
    to_attempt   integer NOT NULL,
    leased       boolean NOT NULL
);
CREATE FUNCTION soak_step() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO soak_steps (turn_id, from_state, to_state, from_attempt, to_attempt, leased)
    VALUES (NEW.id, OLD.state, NEW.state, OLD.attempt, NEW.attempt, coalesce(OLD.lease_until > clock_timestamp(), false));
    RETURN NULL;
END
$$;
CREATE TRIGGER soak_step AFTER UPDATE ON turns
FOR EACH ROW WHEN (OLD.state <> NEW.state OR OLD.attempt <> NEW.attempt) EXECUTE FUNCTION soak_step();

-- Which process takes a turn, or passes the gate with a part; its id is the last number but one of its name.
CREATE FUNCTION soak_taken() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    instance text;
BEGIN
    IF TG_TABLE_NAME = 'turns' THEN
        instance := NEW.instance;
    ELSE
        SELECT t.instance INTO instance FROM turns t WHERE t.id = NEW.turn_id;
    END IF;
    PERFORM pg_notify('soak_taken', substring(instance FROM '-([0-9]+)-[0-9]+$'));
    RETURN NULL;
END
$$;
CREATE TRIGGER soak_begun AFTER INSERT ON turns FOR EACH ROW EXECUTE FUNCTION soak_taken();
CREATE TRIGGER soak_claimed AFTER UPDATE ON turns FOR EACH ROW WHEN (OLD.attempt < NEW.attempt) EXECUTE FUNCTION soak_taken();
CREATE TRIGGER soak_intended AFTER INSERT OR UPDATE ON deliveries FOR EACH ROW WHEN (NEW.state = 'sending') EXECUTE FUNCTION soak_taken();
