-- The writing of what was filled in is not part of what is measured.
CHECKPOINT;
