//! Version "2.0": seven flat tables, and those with a leading dot.

use super::columns::{Columns, Named, wrong};
use super::{functions, locations};
use profile_core::error::Result;
use profile_core::tables::{
    COMMENTS, Comments, FILES, Files, Kind, LABELS, Labels, Meta, SamplePlaces, SourceFacts,
    TablesV2, V2,
};

pub fn tables_v2<'call>(all: &Named<'call>, meta: Meta<'call>) -> Result<TablesV2<'call>> {
    for (name, table) in &all.elements {
        if !table.inherits(c"data.frame") {
            let rule = format!("must be a data frame, not {}", table.kind_name());
            return Err(wrong((*name).to_owned(), None, rule));
        }
    }
    let table = |i: usize| Columns::required(all, &V2[i]);
    let (sources, samples, values, frames) = (table(1)?, table(2)?, table(3)?, table(4)?);
    Ok(TablesV2 {
        meta,
        source_id: sources.integers("source_id")?,
        source_type: sources.text("source_type")?,
        source_uri: sources.text("source_uri")?,
        source_timestamp: sources.doubles("source_timestamp")?,
        facts: SourceFacts {
            period: sources.optional_doubles(".period")?,
            period_type: sources.optional_text(".period_type")?,
            period_unit: sources.optional_text(".period_unit")?,
            duration: sources.optional_doubles(".duration_nanos")?,
            default_type: sources.optional_text(".default_type")?,
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
        value_sample: values.integers("sample_id")?,
        value_type: values.text("type")?,
        value_unit: values.text("unit")?,
        value: values.doubles("value")?,
        frame_sample: frames.integers("sample_id")?,
        frame_depth: frames.integers("depth")?,
        frame_location: frames.integers("location_id")?,
        locations: locations(&table(5)?)?,
        functions: functions(&table(6)?)?,
        files: files(all)?,
        labels: labels(all)?,
        comments: comments(all)?,
    })
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
        unit: table.text("unit")?,
    }))
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
