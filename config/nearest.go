package config

// nearest returns the known name that a mistyped one was probably meant to be, or nothing.
func nearest(name string, known []string) string {
	best, least := "", min(max(len(name)/4, 2), 4)+1
	if len(name) > 80 {
		return ""
	}
	for _, candidate := range known {
		if d := distance(name, candidate); d < least && d < len(candidate) {
			best, least = candidate, d
		}
	}
	return best
}

// distance counts the letters to insert, remove or change.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
