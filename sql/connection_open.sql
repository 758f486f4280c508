-- Compiling a plan takes a second here once there are a hundred projects, and saves nothing. Nothing relies on it: behind a
-- pooler it reaches whichever server connection it reaches.
SET jit = off;
