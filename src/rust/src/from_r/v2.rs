//! Version "2.0": seven flat tables, and those with a leading dot.

use super::columns::{Columns, Named, wrong};
use super::{functions, locations};
use profile_core::error::Result;
use profile_core::message;
use profile_core::tables::{
    Attributes, COMMENTS, Comments, Entities, FILES, Files, FunctionFacts, Kind, LABELS, Labels,
    LocationFacts, MAPPINGS, Mappings, Meta, Owner, RESOURCE_ENTITIES, RESOURCES, Resources,
    SAMPLE_TYPES, SCOPES, SampleOrigins, SamplePlaces, SampleTypes, Scopes, SourceFacts, TablesV2,
    V2,
};

pub fn tables_v2<'call>(all: &Named<'call>, meta: Meta<'call>) -> Result<TablesV2<'call>> {
    for (name, table) in &all.elements {
        if !table.inherits(c"data.frame") {
            let rule = message!("must be a data frame, not {}", table.kind_name()?);
            return Err(wrong(message!("{name}"), None, rule));
        }
    }
    let table = |i: usize| Columns::required(all, &V2[i]);
    let (sources, samples, values, frames) = (table(1)?, table(2)?, table(3)?, table(4)?);
    let (places, code) = (table(5)?, table(6)?);
    Ok(TablesV2 {
        meta,
        source_id: sources.integers("source_id")?,
        source_type: sources.text("source_type")?,
        source_uri: sources.text("source_uri")?,
        source_timestamp: sources.doubles("source_timestamp")?,
        facts: SourceFacts {
            time_nanos: sources.optional_text(".time_nanos")?,
            period: sources.optional_doubles(".period")?,
            period_exact: sources.optional_text(".period_exact")?,
            period_type: sources.optional_text(".period_type")?,
            period_unit: sources.optional_text(".period_unit")?,
            duration: sources.optional_doubles(".duration_nanos")?,
            duration_exact: sources.optional_text(".duration_nanos_exact")?,
            default_type: sources.optional_text(".default_type")?,
            drop_frames: sources.optional_text(".drop_frames")?,
            keep_frames: sources.optional_text(".keep_frames")?,
            doc_url: sources.optional_text(".doc_url")?,
            scope_id: sources.optional_integers(".scope_id")?,
            profile_id: sources.optional_text(".profile_id")?,
            dropped_attributes: sources.optional_doubles(".dropped_attributes_count")?,
            payload_format: sources.optional_text(".original_payload_format")?,
            payload: sources.optional_text(".original_payload")?,
            memory: sources.optional_logicals(".memory_profiling")?,
            gc: sources.optional_logicals(".gc_profiling")?,
            line: sources.optional_logicals(".line_profiling")?,
        },
        sample_id: samples.integers("sample_id")?,
        sample_source: samples.integers("source_id")?,
        places: match samples.optional_text(".toplevel_filename")? {
            Some(filename) => {
                samples.check(".toplevel_line", Kind::Integer)?;
                Some(SamplePlaces {
                    filename,
                    line: samples.integers(".toplevel_line")?,
                })
            }
            None => None,
        },
        origins: SampleOrigins {
            timestamp: samples.optional_doubles(".timestamp")?,
            time_nanos: samples.optional_text(".time_nanos")?,
            trace_id: samples.optional_text(".trace_id")?,
            span_id: samples.optional_text(".span_id")?,
        },
        value_sample: values.integers("sample_id")?,
        value_type: values.text("type")?,
        value_unit: values.text("unit")?,
        value: values.doubles("value")?,
        value_exact: values.optional_text(".value_exact")?,
        frame_sample: frames.integers("sample_id")?,
        frame_depth: frames.integers("depth")?,
        frame_location: frames.integers("location_id")?,
        locations: locations(&places)?,
        location_facts: location_facts(&places)?,
        functions: functions(&code)?,
        function_facts: function_facts(&code)?,
        mappings: mappings(all)?,
        sample_types: sample_types(all)?,
        files: files(all)?,
        labels: labels(all)?,
        comments: comments(all)?,
        resources: resources(all)?,
        entities: entities(all)?,
        scopes: scopes(all)?,
        attributes: attributes(all)?,
    })
}

fn location_facts<'call>(table: &Columns<'call>) -> Result<LocationFacts<'call>> {
    Ok(LocationFacts {
        line_exact: table.optional_text(".line_exact")?,
        column: table.optional_integers(".column")?,
        column_exact: table.optional_text(".column_exact")?,
        inlined: table.optional_logicals(".inlined")?,
        frame_type: table.optional_text(".frame_type")?,
        mapping_id: table.optional_integers(".mapping_id")?,
        address: table.optional_text(".address")?,
        is_folded: table.optional_logicals(".is_folded")?,
        native_id: table.optional_text(".native_id")?,
    })
}

fn function_facts<'call>(table: &Columns<'call>) -> Result<FunctionFacts<'call>> {
    Ok(FunctionFacts {
        start_line_exact: table.optional_text(".start_line_exact")?,
        has_name: table.optional_logicals(".has_name")?,
        has_system_name: table.optional_logicals(".has_system_name")?,
        native_id: table.optional_text(".native_id")?,
    })
}

fn mappings<'call>(all: &Named<'call>) -> Result<Option<Mappings<'call>>> {
    let Some(table) = Columns::optional(all, &MAPPINGS)? else {
        return Ok(None);
    };
    Ok(Some(Mappings {
        mapping_id: table.integers("mapping_id")?,
        memory_start: table.text("memory_start")?,
        memory_limit: table.text("memory_limit")?,
        file_offset: table.text("file_offset")?,
        filename: table.text("filename")?,
        build_id: table.text("build_id")?,
        has_functions: table.integers("has_functions")?,
        has_filenames: table.integers("has_filenames")?,
        has_line_numbers: table.integers("has_line_numbers")?,
        has_inline_frames: table.integers("has_inline_frames")?,
        native_id: table.optional_text("native_id")?,
    }))
}

fn sample_types<'call>(all: &Named<'call>) -> Result<Option<SampleTypes<'call>>> {
    let Some(table) = Columns::optional(all, &SAMPLE_TYPES)? else {
        return Ok(None);
    };
    Ok(Some(SampleTypes {
        source_id: table.integers("source_id")?,
        type_: table.text("type")?,
        unit: table.text("unit")?,
        recorded: table.text("recorded")?,
    }))
}

fn files<'call>(all: &Named<'call>) -> Result<Option<Files<'call>>> {
    let Some(table) = Columns::optional(all, &FILES)? else {
        return Ok(None);
    };
    Ok(Some(Files {
        source_id: table.integers("source_id")?,
        number: table.integers("number")?,
        filename: table.text("filename")?,
        sample_id: table.integers("sample_id")?,
    }))
}

fn labels<'call>(all: &Named<'call>) -> Result<Option<Labels<'call>>> {
    let Some(table) = Columns::optional(all, &LABELS)? else {
        return Ok(None);
    };
    Ok(Some(Labels {
        sample_id: table.integers("sample_id")?,
        key: table.text("key")?,
        str: table.text("str")?,
        num: table.doubles("num")?,
        num_exact: table.optional_text("num_exact")?,
        unit: table.text("unit")?,
        type_: table.optional_text("type")?,
        value: table.optional_text("value")?,
    }))
}

fn resources<'call>(all: &Named<'call>) -> Result<Option<Resources<'call>>> {
    let Some(table) = Columns::optional(all, &RESOURCES)? else {
        return Ok(None);
    };
    Ok(Some(Resources {
        resource_id: table.integers("resource_id")?,
        schema_url: table.text("schema_url")?,
        dropped_attributes: table.doubles("dropped_attributes_count")?,
    }))
}

fn entities<'call>(all: &Named<'call>) -> Result<Option<Entities<'call>>> {
    let Some(table) = Columns::optional(all, &RESOURCE_ENTITIES)? else {
        return Ok(None);
    };
    Ok(Some(Entities {
        resource_id: table.integers("resource_id")?,
        schema_url: table.text("schema_url")?,
        type_: table.text("type")?,
        id_keys: table.text("id_keys")?,
        description_keys: table.text("description_keys")?,
    }))
}

fn scopes<'call>(all: &Named<'call>) -> Result<Option<Scopes<'call>>> {
    let Some(table) = Columns::optional(all, &SCOPES)? else {
        return Ok(None);
    };
    Ok(Some(Scopes {
        scope_id: table.integers("scope_id")?,
        resource_id: table.integers("resource_id")?,
        name: table.text("name")?,
        version: table.text("version")?,
        schema_url: table.text("schema_url")?,
        dropped_attributes: table.doubles("dropped_attributes_count")?,
    }))
}

fn attributes<'call>(all: &Named<'call>) -> Result<[Option<Attributes<'call>>; Owner::ALL.len()]> {
    let mut tables: [Option<Attributes>; Owner::ALL.len()] = Default::default();
    for (slot, owner) in tables.iter_mut().zip(Owner::ALL) {
        if let Some(table) = Columns::optional(all, &owner.table())? {
            *slot = Some(Attributes {
                owner: table.integers(owner.key())?,
                key: table.text("key")?,
                type_: table.text("type")?,
                value: table.text("value")?,
                unit: match owner.has_units() {
                    true => Some(table.text("unit")?),
                    false => None,
                },
            });
        }
    }
    Ok(tables)
}

fn comments<'call>(all: &Named<'call>) -> Result<Option<Comments<'call>>> {
    let Some(table) = Columns::optional(all, &COMMENTS)? else {
        return Ok(None);
    };
    Ok(Some(Comments {
        source_id: table.integers("source_id")?,
        comment: table.text("comment")?,
    }))
}
