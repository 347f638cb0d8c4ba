// Judges the judge: what Go rewrote is the same, and what is altered in any one field
// is not.
package main

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"sort"

	"github.com/google/pprof/profile"
)

func selftest(args []string) error {
	alterations := 0
	for _, path := range args {
		p, err := parse(path)
		if err != nil {
			return err
		}
		var rewritten bytes.Buffer
		if err := p.Write(&rewritten); err != nil {
			return err
		}
		again, err := profile.ParseData(rewritten.Bytes())
		if err != nil {
			return err
		}
		if found := difference(exact(p), exact(again)); found != "" {
			return fmt.Errorf("%s, rewritten by Go: %s", path, found)
		}
		n, err := unnoticed(again, walker{}, exact)
		if err != nil {
			return fmt.Errorf("%s, exact: %v", path, err)
		}
		alterations += n

		n, err = unnoticed(again, resolved.without("Mapping", "Location", "Function"), inOrder)
		if err != nil {
			return fmt.Errorf("%s, resolved: %v", path, err)
		}
		alterations += n

		// What is merged already, Go merges to the same, in whatever order.
		once, err := profile.Merge([]*profile.Profile{p})
		if err != nil {
			return err
		}
		sort.SliceStable(once.Sample, func(i, j int) bool { return once.Sample[i].Value[0] < once.Sample[j].Value[0] })
		twice, err := profile.Merge([]*profile.Profile{once})
		if err != nil {
			return err
		}
		if found := difference(merged(once), merged(twice)); found != "" {
			return fmt.Errorf("%s, merged again: %s", path, found)
		}
		n, err = unnoticed(once, resolved.without("Mapping", "Location", "Function"), merged)
		if err != nil {
			return fmt.Errorf("%s, merged: %v", path, err)
		}
		alterations += n
	}
	fmt.Printf("%d files, %d alterations, all noticed\n", len(args), alterations)
	return nil
}

// without skips tables of the profile, so that all is reached through its samples.
func (w walker) without(tables ...string) walker {
	w.tables = map[string]bool{}
	for _, table := range tables {
		w.tables[table] = true
	}
	return w
}

var index = regexp.MustCompile(`\[[^]]*\]`)

// unnoticed alters a profile in one place at a time, one of each kind, and gives the
// first place where that changes no line, else the number of places.
func unnoticed(p *profile.Profile, places walker, lines func(*profile.Profile) []string) (int, error) {
	before := lines(p)
	kinds := map[string]bool{}
	var missed error
	try := func(path string, alter, restore func()) {
		alter()
		if missed == nil && difference(before, lines(p)) == "" {
			missed = fmt.Errorf("%s was altered, which was not noticed", path)
		}
		restore()
	}
	places.walk("", reflect.ValueOf(p), 0, func(path string, leaf reflect.Value) {
		kind := index.ReplaceAllString(path, "[]")
		if kinds[kind] || !leaf.CanSet() {
			return
		}
		kinds[kind] = true
		old := reflect.ValueOf(leaf.Interface())
		try(path, func() { alter(leaf) }, func() { leaf.Set(old) })
	})
	if n := len(p.Sample); n > 0 {
		kinds["a sample less"] = true
		all := p.Sample
		try("a sample less", func() { p.Sample = all[:n-1] }, func() { p.Sample = all })
	}
	for _, s := range p.Sample {
		if n := len(s.Location); n > 0 && !kinds["a frame less"] {
			kinds["a frame less"] = true
			all := s.Location
			try("a frame less", func() { s.Location = all[:n-1] }, func() { s.Location = all })
		}
	}
	return len(kinds), missed
}

func alter(leaf reflect.Value) {
	switch leaf.Kind() {
	case reflect.String:
		leaf.SetString(leaf.String() + "x")
	case reflect.Bool:
		leaf.SetBool(!leaf.Bool())
	case reflect.Int64:
		leaf.SetInt(leaf.Int() + 1)
	default:
		leaf.SetUint(leaf.Uint() + 1)
	}
}
