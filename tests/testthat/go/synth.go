// Makes a large profile, for measuring: deep stacks, most of them distinct, that
// compress like profiles of real programs.
package main

import (
	"flag"
	"fmt"
	"math/rand"
	"os"

	"github.com/google/pprof/profile"
)

func synth(args []string) error {
	flags := flag.NewFlagSet("synth", flag.ContinueOnError)
	samples := flags.Int("samples", 1e6, "samples")
	depth := flags.Int("depth", 30, "frames of each")
	seed := flags.Int64("seed", 1, "of all that is random")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("synth needs FILE")
	}
	out, err := os.Create(flags.Arg(0))
	if err != nil {
		return err
	}
	if err := walks(rand.New(rand.NewSource(*seed)), *samples, *depth).Write(out); err != nil {
		return err
	}
	return out.Close()
}

const (
	functionsOfSynth = 5000
	locationsOfSynth = 100000
	// How many others a location calls, the first ones most often.
	calleesOfSynth = 4
)

// walks are random walks through a call graph. As in a program, a stack shares its
// outer frames with the one before.
func walks(r *rand.Rand, samples, depth int) *profile.Profile {
	p := &profile.Profile{
		SampleType:        []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		DefaultSampleType: "cpu",
		PeriodType:        &profile.ValueType{Type: "cpu", Unit: "nanoseconds"},
		Period:            10000000,
		TimeNanos:         1732169999123456789,
		DurationNanos:     int64(samples) * 10000000,
		Mapping: []*profile.Mapping{{
			ID: 1, Start: 0x400000, Limit: 0x4000000, File: "/usr/bin/program",
			HasFunctions: true, HasFilenames: true, HasLineNumbers: true,
		}},
	}
	for i := 0; i < functionsOfSynth; i++ {
		name := fmt.Sprintf("package%d.function_%d", i%97, i)
		p.Function = append(p.Function, &profile.Function{
			ID: uint64(i + 1), Name: name, SystemName: name,
			Filename: fmt.Sprintf("package%d/file_%d.go", i%97, i%397), StartLine: int64(i%1000 + 1),
		})
	}
	for i := 0; i < locationsOfSynth; i++ {
		f := p.Function[r.Intn(functionsOfSynth)]
		p.Location = append(p.Location, &profile.Location{
			ID: uint64(i + 1), Mapping: p.Mapping[0], Address: 0x400000 + uint64(i*16),
			Line: []profile.Line{{Function: f, Line: f.StartLine + int64(r.Intn(50))}},
		})
	}
	callees := make([][calleesOfSynth]int32, locationsOfSynth)
	for i := range callees {
		for j := range callees[i] {
			callees[i][j] = int32(r.Intn(locationsOfSynth))
		}
	}
	walk := make([]int32, depth)
	for i := 0; i < samples; i++ {
		from := 0
		if i > 0 {
			from = depth - 1 - r.Intn(1+r.Intn(depth))
		}
		for ; from < depth; from++ {
			if from > 0 {
				walk[from] = callees[walk[from-1]][r.Intn(1+r.Intn(calleesOfSynth))]
			}
		}
		s := &profile.Sample{Location: make([]*profile.Location, depth), Value: []int64{1, 10000000}}
		for j, place := range walk {
			s.Location[depth-1-j] = p.Location[place]
		}
		p.Sample = append(p.Sample, s)
	}
	return p
}
