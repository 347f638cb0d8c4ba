// Compares what went into this package with what came out of it.
//
// Both are read by Go, and told as lines of text that must be the same. The lines come
// from the exported fields of Go's own structs, whichever there are, so that no
// field can be forgotten.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
)

func compare(args []string) error {
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	mode := flags.String("mode", "exact", "exact: all is the same; resolved: all but ids, the order of tables, and what no sample refers to; merged: the output is what Go merges of the inputs")
	forget := flags.String("forget", "", "a label of the output that tells its inputs apart (merged only)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 || *mode != "exact" && *mode != "resolved" && *mode != "merged" {
		return fmt.Errorf("compare needs a mode and LIST, of lines `input[;input...]<TAB>output`")
	}
	list, err := os.Open(flags.Arg(0))
	if err != nil {
		return err
	}
	defer list.Close()
	compared, differ := 0, 0
	scanner := bufio.NewScanner(list)
	for scanner.Scan() {
		pair := strings.Split(scanner.Text(), "\t")
		if len(pair) != 2 {
			return fmt.Errorf("no `input<TAB>output`: %q", scanner.Text())
		}
		found := ""
		switch *mode {
		case "exact":
			found = compareAs(exact, pair[0], pair[1])
		case "resolved":
			found = compareAs(inOrder, pair[0], pair[1])
		default:
			found = compareMerged(strings.Split(pair[0], ";"), pair[1], *forget)
		}
		compared++
		if found != "" {
			differ++
			fmt.Printf("%s: %s\n", pair[0], found)
		}
	}
	if err := scanner.Err(); err != nil {
		return err
	}
	fmt.Printf("%d compared, %d differ\n", compared, differ)
	if differ > 0 {
		os.Exit(1)
	}
	return nil
}

func parse(path string) (*profile.Profile, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p, err := profile.ParseData(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %v", path, err)
	}
	return p, nil
}

func compareAs(lines func(*profile.Profile) []string, input, output string) string {
	a, err := parse(input)
	if err != nil {
		return err.Error()
	}
	b, err := parse(output)
	if err != nil {
		return err.Error()
	}
	return difference(lines(a), lines(b))
}

// nameUnknown gives functions of which nothing is told the name that OpenTelemetry, which
// wants one, gets for them.
func nameUnknown(p *profile.Profile) {
	for _, f := range p.Function {
		if f.Name == "" && f.SystemName == "" && f.Filename == "" {
			f.Name = "<unknown>"
		}
	}
}

// compareMerged holds an output against Go's Merge of the inputs.
func compareMerged(inputs []string, output, forget string) string {
	var all []*profile.Profile
	for _, path := range inputs {
		p, err := parse(path)
		if err != nil {
			return err.Error()
		}
		markColumns(p)
		all = append(all, p)
	}
	want, err := profile.Merge(all)
	if err != nil {
		return err.Error()
	}
	for _, f := range want.Function {
		f.Name, _, _ = strings.Cut(f.Name, columnMark)
	}
	got, err := parse(output)
	if err != nil {
		return err.Error()
	}
	if forget == "" {
		return difference(merged(want), merged(got))
	}
	for _, s := range got.Sample {
		delete(s.Label, forget)
	}
	return difference(merged(want), append(header(got), sums(got)...))
}

const columnMark = "\x00column "

// markColumns gives lines of different columns different functions: Go's Merge, since it
// knows columns, joins locations whose inlined lines differ in nothing else (it writes
// each line's column where the next line's function goes in the key).
func markColumns(p *profile.Profile) {
	next := uint64(0)
	taken := map[uint64]bool{next: true}
	for _, f := range p.Function {
		taken[f.ID] = true
	}
	marked := map[string]*profile.Function{}
	for _, l := range p.Location {
		for i := range l.Line {
			column := reflect.ValueOf(l.Line[i]).FieldByName("Column")
			if f := l.Line[i].Function; column.IsValid() && f != nil && column.Int() != 0 {
				key := fmt.Sprint(f.ID, columnMark, column.Int())
				if marked[key] == nil {
					for taken[next] {
						next++
					}
					taken[next] = true
					copied := *f
					copied.ID = next
					copied.Name += columnMark + fmt.Sprint(column.Int())
					marked[key] = &copied
				}
				l.Line[i].Function = marked[key]
			}
		}
	}
}

// -- A profile as lines ----------------------------------------------------------

// exact tells everything: `Sample[3].Location[0] = 7`, where 7 is an id. What Go shows
// of a profile is derived from that, but asked nevertheless: it is Go's own word.
func exact(p *profile.Profile) []string {
	lines := text(p, walker{})
	for i, line := range strings.Split(p.String(), "\n") {
		lines = append(lines, fmt.Sprintf("String()[%d] = %s", i, line))
	}
	return lines
}

// merged tells everything but ids, the order of tables, and what no sample refers to.
func merged(p *profile.Profile) []string {
	return append(header(p), rows(p)...)
}

// inOrder tells the same, and each sample's place.
func inOrder(p *profile.Profile) []string {
	nameUnknown(p)
	lines := header(p)
	for i, key := range keys(p) {
		lines = append(lines, fmt.Sprintf("Sample[%d]: %s = %v", i, key, p.Sample[i].Value))
	}
	return lines
}

func header(p *profile.Profile) []string {
	return text(p, walker{skip: map[string]bool{
		"Sample": true, "Mapping": true, "Location": true, "Function": true,
	}})
}

func rows(p *profile.Profile) []string {
	lines := keys(p)
	for i, s := range p.Sample {
		lines[i] += fmt.Sprint(" = ", s.Value)
	}
	sort.Strings(lines)
	return lines
}

// sums are the rows of a profile after equal stacks with equal labels were summed.
func sums(p *profile.Profile) []string {
	total := map[string][]int64{}
	for i, key := range keys(p) {
		if total[key] == nil {
			total[key] = make([]int64, len(p.SampleType))
		}
		for t, value := range p.Sample[i].Value {
			total[key][t] += value
		}
	}
	var lines []string
	for key, values := range total {
		lines = append(lines, key+fmt.Sprint(" = ", values))
	}
	sort.Strings(lines)
	return lines
}

// resolved follows references and leaves out what they were, and what Go derives.
var resolved = walker{follow: true, skip: map[string]bool{"ID": true, "KernelRelocationSymbol": true}}

// keys tell samples apart, one for each: the stack written out, and the labels.
func keys(p *profile.Profile) []string {
	places := make(map[*profile.Location]string, len(p.Location))
	for _, l := range p.Location {
		places[l] = "{" + strings.Join(text(l, resolved), ", ") + "} "
	}
	labels := walker{skip: map[string]bool{"Location": true, "Value": true}}
	keys := make([]string, len(p.Sample))
	for i, s := range p.Sample {
		var key strings.Builder
		key.WriteString("Sample ")
		for _, l := range s.Location {
			key.WriteString(places[l])
		}
		key.WriteString(strings.Join(text(s, labels), ", "))
		keys[i] = key.String()
	}
	return keys
}

func text(record interface{}, w walker) []string {
	var lines []string
	w.walk("", reflect.ValueOf(record), 0, func(path string, leaf reflect.Value) {
		lines = append(lines, path[1:]+" = "+show(leaf))
	})
	return lines
}

func show(leaf reflect.Value) string {
	switch leaf.Kind() {
	case reflect.String:
		return strconv.Quote(leaf.String())
	case reflect.Int64:
		return strconv.FormatInt(leaf.Int(), 10)
	case reflect.Uint64:
		return strconv.FormatUint(leaf.Uint(), 10)
	default:
		return fmt.Sprint(leaf)
	}
}

// walker goes through the exported fields of a record and of all that is in it.
type walker struct {
	// Whether to go on into what a record refers to, instead of giving its id.
	follow bool
	// Names of fields that are left out: of any record, and of the profile.
	skip, tables map[string]bool
}

// walk visits numbers, texts and flags. An empty list is as good as none. `depth`
// counts records: what the profile itself points to are its tables, all else that is
// pointed to stands in one of them.
func (w walker) walk(path string, v reflect.Value, depth int, visit func(string, reflect.Value)) {
	switch v.Kind() {
	case reflect.Ptr:
		switch {
		case v.IsNil():
			visit(path, reflect.ValueOf("none"))
		case depth < 2 || w.follow:
			w.walk(path, v.Elem(), depth, visit)
		default:
			// By value: no one changes an id through a reference.
			visit(path, reflect.ValueOf(v.Elem().FieldByName("ID").Uint()))
		}
	case reflect.Struct:
		for i := 0; i < v.NumField(); i++ {
			field := v.Type().Field(i)
			left := w.skip[field.Name] || depth == 0 && w.tables[field.Name]
			if field.PkgPath == "" && !left {
				w.walk(path+"."+field.Name, v.Field(i), depth+1, visit)
			}
		}
	case reflect.Slice:
		for i := 0; i < v.Len(); i++ {
			w.walk(path+"["+strconv.Itoa(i)+"]", v.Index(i), depth, visit)
		}
	case reflect.Map:
		keys := v.MapKeys()
		sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() })
		for _, key := range keys {
			w.walk(path+"["+strconv.Quote(key.String())+"]", v.MapIndex(key), depth, visit)
		}
	default:
		visit(path, v)
	}
}

// -- Differences -----------------------------------------------------------------

// difference shows the first line on either side that the other has not, and tells how
// many there are. Nothing if there is none.
func difference(input, output []string) string {
	count := map[string]int{}
	for _, line := range input {
		count[line]++
	}
	var gone, come []string
	for _, line := range output {
		if count[line] > 0 {
			count[line]--
		} else {
			come = append(come, line)
		}
	}
	for _, line := range input {
		if count[line] > 0 {
			count[line]--
			gone = append(gone, line)
		}
	}
	if len(gone) == 0 && len(come) == 0 {
		return ""
	}
	was, is := "nothing", "nothing"
	if len(gone) > 0 {
		was = gone[0]
	}
	if len(come) > 0 {
		is = come[0]
	}
	was, is = clip(was, is)
	return fmt.Sprintf("%s became %s (lines that differ: %d and %d)", was, is, len(gone), len(come))
}

// clip cuts long lines to what is around the place where they part.
func clip(a, b string) (string, string) {
	const before, after = 100, 160
	from := 0
	for from < len(a) && from < len(b) && a[from] == b[from] {
		from++
	}
	cut := func(s string) string {
		end := ""
		if len(s) > from+after {
			s, end = s[:from+after], "..."
		}
		if from > before {
			s = "..." + s[from-before:]
		}
		return strings.ToValidUTF8(s+end, "")
	}
	return cut(a), cut(b)
}
