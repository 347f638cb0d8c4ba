// The rules of OpenTelemetry for profiles, checked in a message as its writer encoded it.
//
// The rules are those of the comments in profiles.proto (version 1.11), of the specification's page on mappings, and
// of `profcheck`, the checker of OpenTelemetry's profiling group. The check starts at the profiles and follows every
// index, so an entry of the dictionary that it never reaches is an orphan; see tables.go. `profcheck` differs in two
// places, where this program follows the specification: the first link may have ids that consist of zeros, and the
// keys of resources and scopes, which are indices of strings, are references, too.

package main

import (
	"fmt"
	"os"
	"slices"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"
)

// A table of the dictionary.
type table int

const (
	mappings table = iota
	locations
	functions
	links
	texts
	attributes
	stacks
	tables
)

var names = [tables]string{"mapping", "location", "function", "link", "string", "attribute", "stack"}

type checker struct {
	dictionary *profiles.ProfilesDictionary
	combined   bool
	lengths    [tables]int
	// Which entries were reached.
	reached [tables][]bool
	// A line for each broken rule.
	found []string
}

func check(file string, combined bool) ([]string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	message := &profiles.ProfilesData{}
	if err := proto.Unmarshal(content, message); err != nil {
		return nil, err
	}
	c := &checker{dictionary: message.GetDictionary(), combined: combined}
	c.measure()
	c.resources(message.GetResourceProfiles())
	c.zeros()
	c.orphans()
	c.duplicates()
	return c.found, nil
}

func (c *checker) report(rule string, where string, args ...any) {
	c.found = append(c.found, rule+": "+fmt.Sprintf(where, args...))
}

func (c *checker) measure() {
	d := c.dictionary
	c.lengths = [tables]int{
		len(d.GetMappingTable()), len(d.GetLocationTable()), len(d.GetFunctionTable()), len(d.GetLinkTable()),
		len(d.GetStringTable()), len(d.GetAttributeTable()), len(d.GetStackTable()),
	}
	for of, length := range c.lengths {
		c.reached[of] = make([]bool, length)
	}
}

// Follows an index. Returns whether the entry exists and is reached for the first time.
func (c *checker) follow(of table, index int32, where string) bool {
	if index < 0 || int(index) >= c.lengths[of] {
		c.report("range", "%s refers to %s %d of %d", where, names[of], index, c.lengths[of])
		return false
	}
	first := !c.reached[of][index]
	c.reached[of][index] = true
	return first
}

// ---- What profiles contain -------------------------------------------------------

func (c *checker) resources(all []*profiles.ResourceProfiles) {
	if len(all) == 0 {
		c.report("empty", "the message has no resource")
	}
	for i, resource := range all {
		where := fmt.Sprintf("resource %d", i)
		c.pairs(resource.GetResource().GetAttributes(), where)
		if len(resource.GetScopeProfiles()) == 0 {
			c.report("empty", "%s has no scope", where)
		}
		for j, scope := range resource.GetScopeProfiles() {
			where := fmt.Sprintf("%s scope %d", where, j)
			c.pairs(scope.GetScope().GetAttributes(), where)
			if len(scope.GetProfiles()) == 0 {
				c.report("empty", "%s has no profile", where)
			}
			for k, profile := range scope.GetProfiles() {
				c.profile(profile, fmt.Sprintf("%s profile %d", where, k))
			}
		}
	}
}

func (c *checker) profile(profile *profiles.Profile, where string) {
	c.attributes(profile.GetAttributeIndices(), where)
	for _, type_ := range []*profiles.ValueType{profile.GetSampleType(), profile.GetPeriodType()} {
		c.follow(texts, type_.GetTypeStrindex(), where)
		c.follow(texts, type_.GetUnitStrindex(), where)
	}
	if (profile.GetOriginalPayloadFormat() == "") != (len(profile.GetOriginalPayload()) == 0) {
		c.report("payload", "%s has a payload without a format, or a format without a payload", where)
	}
	if id := profile.GetProfileId(); len(id) != 0 && (len(id) != 16 || isZero(id)) {
		c.report("id", "%s has the id %x", where, id)
	}
	begin := profile.GetTimeUnixNano()
	end := begin + profile.GetDurationNano()
	shape := ""
	identities := map[string]bool{}
	for i, sample := range profile.GetSamples() {
		where := fmt.Sprintf("%s sample %d", where, i)
		own := c.sample(sample, where)
		if shape == "" {
			shape = own
		}
		if own != shape {
			c.report("shape", "%s has %s, and the first sample has %s", where, own, shape)
		}
		for _, time := range sample.GetTimestampsUnixNano() {
			if time < begin || time >= end {
				c.report("time", "%s was taken at %d, and the profile covers %d to %d", where, time, begin, end)
			}
		}
		set := slices.Sorted(slices.Values(sample.GetAttributeIndices()))
		identity := fmt.Sprint(sample.GetStackIndex(), set, sample.GetLinkIndex())
		if c.combined && identities[identity] {
			c.report("combined", "%s has the stack, attributes and link of an earlier sample", where)
		}
		identities[identity] = true
	}
}

// Checks a sample and returns what it has: values, times, or both.
func (c *checker) sample(sample *profiles.Sample, where string) string {
	if c.follow(stacks, sample.GetStackIndex(), where) {
		c.stack(sample.GetStackIndex())
	}
	c.follow(links, sample.GetLinkIndex(), where)
	c.attributes(sample.GetAttributeIndices(), where)
	values, times := len(sample.GetValues()), len(sample.GetTimestampsUnixNano())
	switch {
	case values == 0 && times == 0:
		c.report("shape", "%s has neither values nor times", where)
		return "nothing"
	case values == 0:
		return "times"
	case times == 0:
		if values != 1 {
			c.report("shape", "%s has %d values without times", where, values)
		}
		return "values"
	case values != times:
		c.report("shape", "%s has %d values and %d times", where, values, times)
	}
	return "values and times"
}

// ---- What these refer to ---------------------------------------------------------

func (c *checker) stack(index int32) {
	where := fmt.Sprintf("stack %d", index)
	for _, location := range c.dictionary.GetStackTable()[index].GetLocationIndices() {
		if c.follow(locations, location, where) {
			c.location(location)
		}
	}
}

func (c *checker) location(index int32) {
	where := fmt.Sprintf("location %d", index)
	location := c.dictionary.GetLocationTable()[index]
	c.attributes(location.GetAttributeIndices(), where)
	if c.follow(mappings, location.GetMappingIndex(), where) {
		c.mapping(location.GetMappingIndex())
	}
	for _, line := range location.GetLines() {
		if line.GetLine() < 0 || line.GetColumn() < 0 {
			c.report("line", "%s is at line %d and column %d", where, line.GetLine(), line.GetColumn())
		}
		if c.follow(functions, line.GetFunctionIndex(), where) {
			c.function(line.GetFunctionIndex())
		}
	}
}

func (c *checker) mapping(index int32) {
	if index == 0 {
		return
	}
	where := fmt.Sprintf("mapping %d", index)
	mapping := c.dictionary.GetMappingTable()[index]
	c.follow(texts, mapping.GetFilenameStrindex(), where)
	c.attributes(mapping.GetAttributeIndices(), where)
	start, limit := mapping.GetMemoryStart(), mapping.GetMemoryLimit()
	if start >= limit && (start != 0 || limit != 0) {
		c.report("addresses", "%s is from %#x to %#x", where, start, limit)
	}
	ids := 0
	for _, attribute := range mapping.GetAttributeIndices() {
		switch c.keyOf(attribute) {
		case "process.executable.build_id.gnu", "process.executable.build_id.go",
			"process.executable.build_id.htlhash":
			ids++
			// An empty id would be the same for all files.
			if c.dictionary.GetAttributeTable()[attribute].GetValue().GetStringValue() == "" {
				c.report("empty build id", "%s", where)
			}
		}
	}
	if ids == 0 {
		c.report("no build id", "%s", where)
	}
}

func (c *checker) function(index int32) {
	if index == 0 {
		return
	}
	where := fmt.Sprintf("function %d", index)
	function := c.dictionary.GetFunctionTable()[index]
	for _, text := range []int32{
		function.GetNameStrindex(), function.GetSystemNameStrindex(), function.GetFilenameStrindex(),
	} {
		c.follow(texts, text, where)
	}
	if function.GetNameStrindex()|function.GetSystemNameStrindex()|function.GetFilenameStrindex() == 0 {
		c.report("name", "%s has neither a name nor a file", where)
	}
	if function.GetStartLine() < 0 {
		c.report("line", "%s starts at line %d", where, function.GetStartLine())
	}
}

// Checks the attributes of a record, whose keys must differ.
func (c *checker) attributes(indices []int32, where string) {
	keys := map[string]bool{}
	for _, index := range indices {
		if c.follow(attributes, index, where) {
			attribute := c.dictionary.GetAttributeTable()[index]
			own := fmt.Sprintf("attribute %d", index)
			c.follow(texts, attribute.GetKeyStrindex(), own)
			c.follow(texts, attribute.GetUnitStrindex(), own)
			c.value(attribute.GetValue(), own)
		}
		if index == 0 {
			c.report("attribute", "%s has the attribute 0, which stands for none", where)
		}
		key := c.keyOf(index)
		if keys[key] {
			c.report("key", "%s has the key %q twice", where, key)
		}
		keys[key] = true
	}
}

func (c *checker) keyOf(attribute int32) string {
	if attribute < 0 || int(attribute) >= c.lengths[attributes] {
		return fmt.Sprintf("of attribute %d", attribute)
	}
	key := c.dictionary.GetAttributeTable()[attribute].GetKeyStrindex()
	if key < 0 || int(key) >= c.lengths[texts] {
		return fmt.Sprintf("of string %d", key)
	}
	return c.dictionary.GetStringTable()[key]
}

// Checks attributes that are not in the dictionary.
func (c *checker) pairs(all []*common.KeyValue, where string) {
	keys := map[string]bool{}
	for _, pair := range all {
		key := pair.GetKey()
		if index := pair.GetKeyStrindex(); index != 0 {
			if key != "" {
				c.report("key", "%s has a key as text and as index", where)
			}
			c.follow(texts, index, where)
			if index > 0 && int(index) < c.lengths[texts] {
				key = c.dictionary.GetStringTable()[index]
			}
		}
		if keys[key] {
			c.report("key", "%s has the key %q twice", where, key)
		}
		keys[key] = true
		c.value(pair.GetValue(), where)
	}
}

func (c *checker) value(value *common.AnyValue, where string) {
	switch value := value.GetValue().(type) {
	case *common.AnyValue_StringValueStrindex:
		c.follow(texts, value.StringValueStrindex, where)
	case *common.AnyValue_ArrayValue:
		for _, element := range value.ArrayValue.GetValues() {
			c.value(element, where)
		}
	case *common.AnyValue_KvlistValue:
		c.pairs(value.KvlistValue.GetValues(), where)
	}
}
