// Messages as the collector's own library reads them. It rejects names in JSON that the format does not have.

package main

import (
	"fmt"
	"os"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

func load(file string) (pprofile.Profiles, error) {
	bytes, err := os.ReadFile(file)
	if err != nil {
		return pprofile.Profiles{}, err
	}
	if isJSON(file) {
		reader := pprofile.JSONUnmarshaler{DisallowUnknownFields: true}
		return reader.UnmarshalProfiles(bytes)
	}
	return (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(bytes)
}

func convert(file string, out string) error {
	profiles, err := load(file)
	if err != nil {
		return err
	}
	var writer pprofile.Marshaler = &pprofile.ProtoMarshaler{}
	if isJSON(out) {
		writer = &pprofile.JSONMarshaler{}
	}
	bytes, err := writer.MarshalProfiles(profiles)
	if err != nil {
		return err
	}
	return os.WriteFile(out, bytes, 0o600)
}

// A line for each profile: its type and unit, the numbers and sums of what is in its samples, and its period.
func read(file string) ([]string, error) {
	profiles, err := load(file)
	if err != nil {
		return nil, err
	}
	var lines []string
	dictionary := profiles.Dictionary()
	text := dictionary.StringTable().At
	for _, resource := range profiles.ResourceProfiles().All() {
		for _, scope := range resource.ScopeProfiles().All() {
			for _, profile := range scope.Profiles().All() {
				observations, sum, frames, attributes := 0, int64(0), 0, 0
				for _, sample := range profile.Samples().All() {
					count := max(sample.Values().Len(), sample.TimestampsUnixNano().Len())
					observations += count
					stack := dictionary.StackTable().At(int(sample.StackIndex()))
					for _, index := range stack.LocationIndices().All() {
						frames += count * max(1, dictionary.LocationTable().At(int(index)).Lines().Len())
					}
					attributes += count * sample.AttributeIndices().Len()
					for _, value := range sample.Values().All() {
						sum += value
					}
				}
				lines = append(lines, fmt.Sprintf(
					"%s %s observations=%d sum=%d frames=%d attributes=%d period=%d %s %s",
					text(int(profile.SampleType().TypeStrindex())), text(int(profile.SampleType().UnitStrindex())),
					observations, sum, frames, attributes, profile.Period(),
					text(int(profile.PeriodType().TypeStrindex())), text(int(profile.PeriodType().UnitStrindex())),
				))
			}
		}
	}
	return lines, nil
}
