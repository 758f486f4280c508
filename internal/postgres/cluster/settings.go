package cluster

import (
	"maps"
	"slices"
)

// basics suit one service on one machine. The log settings keep what patients
// write out of postgres.log: by default an error prints the statement, its
// parameters and the failing row.
var basics = map[string]string{
	"listen_addresses":                  "",
	"port":                              socketPort,
	"max_connections":                   "100",
	"shared_buffers":                    "64MB",
	"max_locks_per_transaction":         "256", // a partition each for many projects
	"deadlock_timeout":                  "200ms",
	"timezone":                          "UTC",
	"log_timezone":                      "UTC",
	"log_checkpoints":                   "off",
	"log_statement":                     "none",
	"log_min_error_statement":           "panic",
	"log_error_verbosity":               "terse",
	"log_parameter_max_length":          "0",
	"log_parameter_max_length_on_error": "0",
	"log_min_duration_statement":        "-1",
	"logging_collector":                 "off", // the lines go to the file that we hand over
}

// careless trades the safety of the data for speed.
var careless = map[string]string{
	"fsync":              "off",
	"synchronous_commit": "off",
	"full_page_writes":   "off",
}

var careful = map[string]string{
	"fsync":              "on",
	"synchronous_commit": "on",
	"full_page_writes":   "on",
}

// settings are postgres's arguments, in a fixed order.
func (c *Cluster) settings() []string {
	all := maps.Clone(basics)
	if c.options.Durable {
		maps.Copy(all, careful)
	} else {
		maps.Copy(all, careless)
	}
	maps.Copy(all, c.options.Settings)
	// The socket is where everyone looks for it, whatever the caller says.
	all["unix_socket_directories"] = quoteDirectory(c.site.seen(c.site.socket, socketHandle))
	all["unix_socket_permissions"] = "0700"

	args := []string{"-D", c.site.seen(c.site.data, dataHandle)}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		args = append(args, "-c", name+"="+all[name])
	}
	return args
}
