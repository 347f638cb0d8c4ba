// Tells what Go's own filters leave of profiles.
//
// Each line of the list is a task: fields between tabs, the first is the path of a
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

	"github.com/google/pprof/profile"
)

func filter(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("filter needs LIST, of lines `file[<TAB>option=value...]`")
	}
	list, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer list.Close()
	scanner := bufio.NewScanner(list)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for scanner.Scan() {
		fields := strings.Split(scanner.Text(), "\t")
		fmt.Fprintln(out, "task")
		p, err := parse(fields[0])
		if err != nil {
			return err
		}
		// As the pprof tool does before it looks at names.
		for _, f := range p.Function {
			if f.Name == "" {
				f.Name = f.SystemName
			}
		}
		if err := apply(p, fields[1:]); err != nil {
			return err
		}
		for _, sample := range p.Sample {
			fmt.Fprintln(out, left(sample))
		}
	}
	return scanner.Err()
}

// In the order of the pprof tool: what the file says when it is read, then the options.
func apply(p *profile.Profile, options []string) error {
	given := map[string]*regexp.Regexp{}
	for _, option := range options {
		name, value, _ := strings.Cut(option, "=")
		if name == "drop" {
			if err := p.RemoveUninteresting(); err != nil {
				return err
			}
			continue
		}
		expression, err := regexp.Compile(value)
		if err != nil {
			return err
		}
		given[name] = expression
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
	return nil
}

func left(sample *profile.Sample) string {
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
