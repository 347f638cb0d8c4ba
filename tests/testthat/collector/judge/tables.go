// Rules for the tables of the dictionary as a whole, after check.go has followed all references to their entries.

package main

import (
	"bytes"
	"slices"

	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"
)

// The entry 0 of each table is the zero value.
func (c *checker) zeros() {
	for of := range tables {
		if c.lengths[of] == 0 {
			c.report("zero", "the table of %ss is empty", names[of])
			continue
		}
		c.reached[of][0] = true
		empty := len(c.encoded(of, 0)) == 0
		if of == links {
			first := c.dictionary.GetLinkTable()[0]
			empty = isZero(first.GetTraceId()) && isZero(first.GetSpanId())
		}
		if !empty {
			c.report("zero", "%s 0 is not empty", names[of])
		}
	}
	for i, link := range c.dictionary.GetLinkTable() {
		trace, span := len(link.GetTraceId()), len(link.GetSpanId())
		if (trace != 16 || span != 8) && (i != 0 || trace != 0 || span != 0) {
			c.report("id", "link %d has ids of %d and %d bytes", i, trace, span)
		}
	}
}

func (c *checker) orphans() {
	for of := range tables {
		for i, reached := range c.reached[of] {
			if !reached {
				c.report("orphan", "nothing refers to %s %d", names[of], i)
			}
		}
	}
}

func (c *checker) duplicates() {
	for of := range tables {
		known := map[string]int{}
		for i := range c.lengths[of] {
			entry := string(c.encoded(of, i))
			if before, ok := known[entry]; ok {
				c.report("duplicate", "%s %d is equal to %d", names[of], i, before)
				continue
			}
			known[entry] = i
		}
	}
}

// An entry as bytes that are equal if the entries have the same meaning: the order of attributes has none.
func (c *checker) encoded(of table, i int) []byte {
	d := c.dictionary
	var entry proto.Message
	switch of {
	case texts:
		return []byte(d.GetStringTable()[i])
	case mappings:
		copy := proto.Clone(d.GetMappingTable()[i]).(*profiles.Mapping)
		slices.Sort(copy.AttributeIndices)
		entry = copy
	case locations:
		copy := proto.Clone(d.GetLocationTable()[i]).(*profiles.Location)
		slices.Sort(copy.AttributeIndices)
		entry = copy
	case functions:
		entry = d.GetFunctionTable()[i]
	case links:
		entry = d.GetLinkTable()[i]
	case attributes:
		entry = d.GetAttributeTable()[i]
	case stacks:
		entry = d.GetStackTable()[i]
	}
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(entry)
	if err != nil {
		fail(err)
	}
	return encoded
}

func isZero(id []byte) bool { return len(bytes.Trim(id, "\x00")) == 0 }
