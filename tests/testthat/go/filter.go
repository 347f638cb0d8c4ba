// What Go's own library leaves of profiles, as text.
//
// Each line of the input is a task: fields between tabs, the first is the path of a
// pprof file, the others are options, `focus=...` and so on, in the words of the pprof
// tool, and `drop=true` for the expressions that the file itself has. The output has
// a line for the task and one for each sample that is left: its values, then its
// locations from the innermost on, each with its mapped file and its lines.
package main

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strings"

	"filter/profile"
)

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for in.Scan() {
		fields := strings.Split(in.Text(), "\t")
		fmt.Fprintln(out, "task")
		p := read(fields[0])
		apply(p, fields[1:])
		for _, sample := range p.Sample {
			fmt.Fprintln(out, show(sample))
		}
	}
	check(in.Err())
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func read(path string) *profile.Profile {
	file, err := os.Open(path)
	check(err)
	defer file.Close()
	p, err := profile.Parse(file)
	check(err)
	// As the pprof tool does before it looks at names.
	for _, f := range p.Function {
		if f.Name == "" {
			f.Name = f.SystemName
		}
	}
	return p
}

// In the order of the pprof tool: what the file says when it is read, then the options.
func apply(p *profile.Profile, options []string) {
	given := map[string]*regexp.Regexp{}
	for _, option := range options {
		name, value, _ := strings.Cut(option, "=")
		if name == "drop" {
			check(p.RemoveUninteresting())
		} else {
			given[name] = regexp.MustCompile(value)
		}
	}
	focus, ignore, hide, show := given["focus"], given["ignore"], given["hide"], given["show"]
	// Older versions drop empty stacks even if nothing is asked for.
	if focus != nil || ignore != nil || hide != nil || show != nil {
		p.FilterSamplesByName(focus, ignore, hide, show)
	}
	if given["show_from"] != nil {
		p.ShowFrom(given["show_from"])
	}
	if given["prune_from"] != nil {
		p.PruneFrom(given["prune_from"])
	}
}

func show(sample *profile.Sample) string {
	places := []string{fmt.Sprint(sample.Value), fmt.Sprint(sample.Label, sample.NumLabel)}
	for _, location := range sample.Location {
		place := fmt.Sprintf("%x", location.Address)
		if location.Mapping != nil {
			place += "@" + location.Mapping.File
		}
		for _, line := range location.Line {
			place += fmt.Sprintf(" %q:%d", line.Function.Name, line.Line)
		}
		places = append(places, place)
	}
	return strings.Join(places, " | ")
}
