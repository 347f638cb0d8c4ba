// Checks and reads OpenTelemetry profiles with the messages of OpenTelemetry itself.
//
// usage:
//
//	judge check FILE...      prints the rules that messages break, see check.go
//	judge combined FILE...   the same, and equal samples must be combined
//	judge read FILE...       prints what the collector's own reader finds in messages, see read.go
//	judge convert FILE OUT   reads a message and writes it in the encoding of the name OUT
//
// Each file contains one message. It is JSON if the name ends in ".json". Files must not be compressed.
package main

import (
	"fmt"
	"os"
	"strings"
)

func main() {
	if len(os.Args) < 3 {
		fail("usage: judge check|combined|read|convert FILE...")
	}
	command, files := os.Args[1], os.Args[2:]
	if command == "convert" {
		if err := convert(files[0], files[1]); err != nil {
			fail(files[0], ": ", err)
		}
		return
	}
	for _, file := range files {
		var lines []string
		var err error
		switch command {
		case "check":
			lines, err = check(file, false)
		case "combined":
			lines, err = check(file, true)
		case "read":
			lines, err = read(file)
		default:
			fail("unknown command ", command)
		}
		if err != nil {
			fail(file, ": ", err)
		}
		for _, line := range lines {
			fmt.Println(line)
		}
	}
}

func isJSON(file string) bool { return strings.HasSuffix(file, ".json") }

func fail(what ...any) {
	fmt.Fprintln(os.Stderr, fmt.Sprint(what...))
	os.Exit(1)
}
