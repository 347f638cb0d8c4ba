// Makes profiles that are odd in every way that Go still calls valid.
//
// A profile is made with Go's structs, written by Go, and then its bytes are
// changed to others of the same meaning (see twist.go). The n-th one depends on
// seed + n - 1 only, so each can be made again alone.
package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"

	"github.com/google/pprof/profile"
)

func generate(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("generate needs DIR N SEED")
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	seed, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return err
	}
	for i := 0; i < n; i++ {
		r := maker{rand.New(rand.NewSource(seed + int64(i)))}
		data, err := r.file(r.profile())
		if err != nil {
			return fmt.Errorf("seed %d: %v", seed+int64(i), err)
		}
		name := fmt.Sprintf("%05d.pb", i+1)
		if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
			name += ".gz"
		}
		if err := os.WriteFile(filepath.Join(args[0], name), data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// maker draws parts of profiles.
type maker struct{ *rand.Rand }

func (r maker) percent(n int) bool { return r.Intn(100) < n }

// -- Numbers and texts -----------------------------------------------------------

var edges = []int64{
	1, -1, 127, 128, 1<<31 - 1, 1 << 31, 1<<53 - 1, 1 << 53, 1<<53 + 1, -(1<<53 + 1),
	math.MaxInt64, math.MaxInt64 - 1, math.MinInt64, math.MinInt64 + 1,
}

// number is 0, of usual size, or at an edge; negative where its bits say so.
func (r maker) number() int64 {
	switch r.Intn(6) {
	case 0:
		return 0
	case 1:
		return edges[r.Intn(len(edges))]
	case 2:
		return int64(r.Uint64())
	case 3:
		return -r.Int63n(1e6)
	default:
		return r.Int63n(1e6)
	}
}

// line is a number of a line or column.
func (r maker) line() int64 {
	switch r.Intn(10) {
	case 0, 1:
		return 0
	case 2:
		return -r.Int63n(1000) - 1
	case 3:
		return 1<<31 - 2 + r.Int63n(5)
	case 4:
		return r.Int63n(1 << 50)
	default:
		return r.Int63n(2000) + 1
	}
}

// address is anything that 64 bits hold.
func (r maker) address() uint64 {
	switch r.Intn(6) {
	case 0:
		return 0
	case 1:
		return math.MaxUint64 - uint64(r.Intn(2))
	case 2:
		return r.Uint64()
	case 3:
		return 1<<53 + uint64(r.Intn(3))
	default:
		return 0x400000 + uint64(r.Intn(1<<20))
	}
}

// ids are different and not 0; in order, or in none, or with gaps of any size.
func (r maker) ids(n int) []uint64 {
	ids := make([]uint64, n)
	style := r.Intn(4)
	seen := map[uint64]bool{0: true}
	for i, place := range r.Perm(n) {
		switch style {
		case 0:
			ids[i] = uint64(i + 1)
		case 1:
			ids[i] = uint64(place + 1)
		case 2:
			ids[i] = uint64(place*(1+r.Intn(3)) + 1)
		default:
			ids[i] = r.address()
		}
		for seen[ids[i]] {
			ids[i] += uint64(r.Intn(1000))
		}
		seen[ids[i]] = true
	}
	return ids
}

var texts = []string{
	"", "f", "main", "main.main", "data.frame", "<Anonymous>", "%<>%", "[[<-.data.frame", "::",
	"(anonymous namespace)::f(int)", "std::vector<int, std::allocator<int> >::push_back",
	"_ZN4core3fmt5write17h0123456789abcdefE", "a name with spaces", "tab\tand\nnewline", "\"quoted\\\"",
	"größe", "函数", "🙂", "e\u0301", "\ufeffbom", "NA", "-", ".", "0", "R", "/usr/lib/libc.so.6", "C:\\R\\a.R", "a.R",
}

func (r maker) text() string {
	if r.percent(30) {
		return fmt.Sprintf("t%d", r.Intn(50))
	}
	return texts[r.Intn(len(texts))]
}

func (r maker) some(percent int) string {
	if r.percent(percent) {
		return r.text()
	}
	return ""
}

// -- Tables ----------------------------------------------------------------------

func (r maker) profile() *profile.Profile {
	p := &profile.Profile{
		SampleType: r.types(),
		DropFrames: r.some(20),
		KeepFrames: r.some(20),
	}
	if r.percent(70) {
		p.TimeNanos, p.DurationNanos = 1732169999123456789, 1e9+r.Int63n(1e9)
	}
	if r.percent(20) {
		p.TimeNanos, p.DurationNanos = r.number(), r.number()
	}
	if r.percent(70) {
		p.PeriodType = &profile.ValueType{Type: r.some(80), Unit: r.some(80)}
	}
	if r.percent(70) {
		p.Period = r.number()
	}
	for i := r.Intn(5); i > 0; i-- {
		p.Comments = append(p.Comments, []string{"", "twice", r.text()}[r.Intn(3)])
	}
	setNewer(p, "DocURL", r.some(20))
	switch kind := r.Intn(3); {
	case kind == 0 && len(p.SampleType) > 0:
		p.DefaultSampleType = p.SampleType[r.Intn(len(p.SampleType))].Type
	case kind == 1:
		p.DefaultSampleType = r.some(30)
	}
	p.Mapping = r.mappings([]int{0, 0, 1, 1, 2, 5}[r.Intn(6)])
	p.Function = r.functions(r.Intn(30))
	p.Location = r.locations(r.Intn(60), p)
	if len(p.SampleType) > 0 {
		p.Sample = r.samples([]int{0, 1, r.Intn(20), r.Intn(201)}[r.Intn(4)], p)
	}
	return p
}

// types differ in their names or else in their units.
func (r maker) types() []*profile.ValueType {
	var types []*profile.ValueType
	seen := map[profile.ValueType]bool{}
	for i := r.Intn(6); i > 0; i-- {
		t := profile.ValueType{
			Type: []string{"samples", "cpu", "alloc_space", r.text()}[r.Intn(4)],
			Unit: []string{"count", "nanoseconds", "bytes", r.text()}[r.Intn(4)],
		}
		if !seen[t] {
			seen[t] = true
			types = append(types, &profile.ValueType{Type: t.Type, Unit: t.Unit})
		}
	}
	return types
}

func (r maker) mappings(n int) []*profile.Mapping {
	var mappings []*profile.Mapping
	for i, id := range r.ids(n) {
		m := &profile.Mapping{
			ID: id, Start: r.address(), Offset: r.address(), File: r.some(90), BuildID: r.some(50),
			HasFunctions: r.percent(50), HasFilenames: r.percent(50),
			HasLineNumbers: r.percent(50), HasInlineFrames: r.percent(50),
		}
		m.Limit = m.Start + uint64(r.Intn(1<<20))
		if r.percent(20) {
			m.Limit = r.address()
		}
		if r.percent(10) {
			m.File = "[kernel.kallsyms]_text"
		}
		if i > 0 && r.percent(10) {
			// The same binary at another place, which Go's merge takes for one.
			last := mappings[i-1]
			m.File, m.BuildID, m.Offset = last.File, last.BuildID, last.Offset
			m.Limit = m.Start + (last.Limit - last.Start)
		}
		mappings = append(mappings, m)
	}
	return mappings
}

func (r maker) functions(n int) []*profile.Function {
	var functions []*profile.Function
	for i, id := range r.ids(n) {
		f := &profile.Function{ID: id, Name: r.text(), Filename: r.some(70), StartLine: r.line()}
		switch r.Intn(3) {
		case 0:
			f.SystemName = f.Name
		case 1:
			f.SystemName = r.text()
		}
		if i > 0 && r.percent(5) {
			last := functions[i-1]
			f.Name, f.SystemName, f.Filename, f.StartLine =
				last.Name, last.SystemName, last.Filename, last.StartLine
		}
		functions = append(functions, f)
	}
	return functions
}

func (r maker) locations(n int, p *profile.Profile) []*profile.Location {
	var locations []*profile.Location
	mapped := r.percent(80)
	addresses := r.percent(70)
	for i, id := range r.ids(n) {
		l := &profile.Location{ID: id, IsFolded: r.percent(10)}
		if i > 0 && r.percent(10) {
			last := locations[i-1]
			l.Mapping, l.Address, l.IsFolded = last.Mapping, last.Address, last.IsFolded
			l.Line = append(l.Line, last.Line...)
			if len(l.Line) > 0 && r.percent(20) {
				setNewer(&l.Line[0], "Column", r.line())
			}
			locations = append(locations, l)
			continue
		}
		if mapped && len(p.Mapping) > 0 {
			// The last one is seldom used.
			l.Mapping = p.Mapping[r.Intn(len(p.Mapping)*5)/5]
		}
		if addresses {
			l.Address = r.address()
		}
		l.Line = r.lines(p.Function)
		locations = append(locations, l)
	}
	return locations
}

func (r maker) lines(functions []*profile.Function) []profile.Line {
	var lines []profile.Line
	if len(functions) == 0 || r.percent(15) {
		return lines
	}
	for i := []int{1, 1, 1, 2, 3, 4}[r.Intn(6)]; i > 0; i-- {
		line := profile.Line{Function: functions[r.Intn(len(functions))], Line: r.line()}
		if column := r.line(); r.percent(30) {
			setNewer(&line, "Column", column)
		}
		if len(lines) > 0 && r.percent(20) {
			line = lines[len(lines)-1]
		}
		lines = append(lines, line)
	}
	return lines
}

// -- Samples ---------------------------------------------------------------------

func (r maker) samples(n int, p *profile.Profile) []*profile.Sample {
	var samples []*profile.Sample
	used := p.Location[:len(p.Location)-r.Intn(len(p.Location)+1)/4]
	labelled := []int{0, 30, 100}[r.Intn(3)]
	room := make([]budget, len(p.SampleType))
	for i := 0; i < n; i++ {
		s := &profile.Sample{Location: r.stack(used)}
		if i > 0 && r.percent(40) {
			s.Location = samples[r.Intn(i)].Location
		}
		zero := r.percent(5)
		for t := range p.SampleType {
			value := r.number()
			if zero || !room[t].take(value) {
				value = 0
			}
			s.Value = append(s.Value, value)
		}
		if r.percent(labelled) {
			r.label(s)
		}
		if i > 0 && r.percent(30) {
			same := samples[r.Intn(i)]
			s.Location, s.Label, s.NumLabel, s.NumUnit = same.Location, same.Label, same.NumLabel, same.NumUnit
		}
		samples = append(samples, s)
	}
	return samples
}

// budget keeps the sum of any samples within 64 bits: Go's own would wrap around.
type budget struct{ up, down int64 }

func (b *budget) take(value int64) bool {
	switch {
	case value >= 0 && b.up <= math.MaxInt64-value:
		b.up += value
	case value < 0 && b.down >= math.MinInt64-value:
		b.down += value
	default:
		return false
	}
	return true
}

func (r maker) stack(locations []*profile.Location) []*profile.Location {
	depth := r.Intn(20)
	if r.percent(2) {
		depth = r.Intn(600)
	}
	var stack []*profile.Location
	for ; depth > 0 && len(locations) > 0; depth-- {
		stack = append(stack, locations[r.Intn(len(locations))])
	}
	return stack
}

// label gives labels, of which some say nothing: Go itself forgets those, but a
// message may have them.
func (r maker) label(s *profile.Sample) {
	s.Label = map[string][]string{}
	s.NumLabel = map[string][]int64{}
	s.NumUnit = map[string][]string{}
	keys := []string{"thread", "bytes", "request", "gc", "größe", "", r.text()}
	for i := r.Intn(4); i > 0; i-- {
		key := keys[r.Intn(len(keys))]
		n := []int{1, 1, 1, 2, 3}[r.Intn(5)]
		if r.percent(50) {
			s.Label[key] = nil
			for j := 0; j < n; j++ {
				s.Label[key] = append(s.Label[key], r.text())
			}
			continue
		}
		s.NumLabel[key], s.NumUnit[key] = nil, nil
		units := r.percent(50)
		for j := 0; j < n; j++ {
			s.NumLabel[key] = append(s.NumLabel[key], r.number())
			if units {
				unit := []string{"bytes", "", r.text()}[r.Intn(3)]
				s.NumUnit[key] = append(s.NumUnit[key], unit)
			}
		}
	}
}
