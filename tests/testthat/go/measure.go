// Measures what Go needs for a file, for bench/pprof to compare with.
//
// GOMAXPROCS is the caller's: with more than one, Go collects its garbage beside
// the work, so that it takes less time but more processors.
package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"sort"
	"strconv"
	"time"

	"github.com/google/pprof/profile"
)

// ourLevel is the level of gzip at which the package writes.
const ourLevel = 5

// A task gets the file, its content, and the profile that is in it.
var tasks = []struct {
	name string
	what func(file, message []byte, p *profile.Profile) error
}{
	{"inflate", func(file, message []byte, p *profile.Profile) error {
		_, err := inflate(file)
		return err
	}},
	{"parse", func(file, message []byte, p *profile.Profile) error {
		_, err := profile.ParseData(file)
		return err
	}},
	{"parse_uncompressed", func(file, message []byte, p *profile.Profile) error {
		_, err := profile.ParseUncompressed(message)
		return err
	}},
	// Go's own choice of a level, which is 6.
	{"write", func(file, message []byte, p *profile.Profile) error {
		return p.Write(&bytes.Buffer{})
	}},
	{"write_our_level", func(file, message []byte, p *profile.Profile) error {
		out, err := gzip.NewWriterLevel(&bytes.Buffer{}, ourLevel)
		if err != nil {
			return err
		}
		if err := p.WriteUncompressed(out); err != nil {
			return err
		}
		return out.Close()
	}},
	{"merge_write_our_level", func(file, message []byte, p *profile.Profile) error {
		sums, err := profile.Merge([]*profile.Profile{p})
		if err != nil {
			return err
		}
		out, err := gzip.NewWriterLevel(&bytes.Buffer{}, ourLevel)
		if err != nil {
			return err
		}
		if err := sums.WriteUncompressed(out); err != nil {
			return err
		}
		return out.Close()
	}},
}

func measure(args []string) error {
	flags := flag.NewFlagSet("measure", flag.ContinueOnError)
	n := flags.Int("n", 5, "repetitions, of which the median is shown")
	only := flags.String("task", "", "the only task; then its peak memory is shown as well, in bytes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || *n < 1 {
		return fmt.Errorf("measure needs FILE")
	}
	file, err := os.ReadFile(flags.Arg(0))
	if err != nil {
		return err
	}
	done := 0
	for _, task := range tasks {
		if *only != "" && *only != task.name {
			continue
		}
		// Only what the task needs is in memory.
		var message []byte
		var p *profile.Profile
		switch task.name {
		case "inflate", "parse":
		case "parse_uncompressed":
			message, err = inflate(file)
		default:
			p, err = profile.ParseData(file)
		}
		if err != nil {
			return err
		}
		before := forgetPeak()
		seconds := make([]float64, *n)
		for i := range seconds {
			runtime.GC()
			start := time.Now()
			if err := task.what(file, message, p); err != nil {
				return err
			}
			seconds[i] = time.Since(start).Seconds()
		}
		sort.Float64s(seconds)
		fmt.Printf("%s\t%.6f\n", task.name, seconds[*n/2])
		if *only != "" {
			fmt.Printf("peak\t%d\n", peak()-before)
		}
		done++
	}
	if done == 0 {
		return fmt.Errorf("no such task: %s", *only)
	}
	return nil
}

func inflate(file []byte) ([]byte, error) {
	if !bytes.HasPrefix(file, []byte{0x1f, 0x8b}) {
		return file, nil
	}
	in, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(in)
}

// forgetPeak sets the peak so far to what is in use now, and tells how much that is.
// Linux only: elsewhere it is 0, and so is the peak.
func forgetPeak() int64 {
	debug.FreeOSMemory()
	// Where this cannot be written, it cannot be measured either.
	os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	return peak()
}

func peak() int64 {
	status, _ := os.ReadFile("/proc/self/status")
	found := regexp.MustCompile(`VmHWM:\s*([0-9]+) kB`).FindSubmatch(status)
	if found == nil {
		return 0
	}
	kilobytes, _ := strconv.ParseInt(string(found[1]), 10, 64)
	return kilobytes * 1024
}
