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
