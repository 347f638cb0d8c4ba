// Judges pprof files by Go's own library, which is the reference of the format.
//
// The library is github.com/google/pprof/profile. Every installation of Go has a
// copy of it; helper-go.R builds this program with that copy, so nothing is
// downloaded. It must build with the copy of Go 1.19, which knows neither the columns
// of lines nor the URL of a documentation: these two are accessed by name.
//
// The file of each command describes what it does.
package main

import (
	"fmt"
	"os"
	"reflect"
)

const usage = `usage: judge COMMAND ...
  generate DIR N SEED                          odd profiles to try
  compare [-mode exact|resolved|merged] [-forget LABEL] LIST
  filter LIST                                  what pprof's filters leave
  selftest FILE ...                            whether compare finds what differs
  measure [-n N] [-task TASK] FILE             seconds that Go needs
  synth [-samples N] [-depth N] [-seed N] FILE a large profile`

func main() {
	commands := map[string]func([]string) error{
		"generate": generate,
		"compare":  compare,
		"filter":   filter,
		"selftest": selftest,
		"measure":  measure,
		"synth":    synth,
	}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(1)
	}
}

// setNewer sets a field that older versions of the library do not have.
func setNewer(record interface{}, name string, value interface{}) {
	if field := reflect.ValueOf(record).Elem().FieldByName(name); field.IsValid() {
		field.Set(reflect.ValueOf(value))
	}
}
