//! Pages that hold a profile: the data in them are JSON, of which mutants are made.

use data_encoding::BASE64;
use profile_core::formats::{Format, page, profvis};

/// Two processes, with labels and times.
const PAGE: &str = r#"{"format":1,"generator":"profile 2.0.0","title":"a","options":{"timeline":true,"labels":true},"strings":["","main","master","worker","a.R","stats"],"functions":{"name":[1,2,3],"file":[0,4,4],"line":[0,0,0],"package":[0,0,5]},"frames":{"function":[0,1,2],"line":[0,3,4],"kind":[0,0,0]},"nodes":{"depth":[0,1,1,0],"frame":[-1,0,1,2]},"types":[{"name":"cpu","unit":"nanoseconds","allocated":false}],"type":0,"counts":-1,"bytes":-1,"sources":[{"name":"master, pid 100","type":"process","period":1000000000,"start":1000000000,"samples":3,"base":false,"seconds":10},{"name":"worker 1 of 2, pid 101","type":"process","period":1000000000,"start":1000000000,"samples":2,"base":false,"seconds":10}],"labels":[{"key":"route","value":"/a","set":[1]},{"key":"route","value":"/b","set":[2]}],"values":[{"source":0,"set":0,"type":0,"node":[2],"value":[1000000000]},{"source":0,"set":1,"type":0,"node":[2],"value":[1000000000]},{"source":0,"set":2,"type":0,"node":[2],"value":[1000000000]},{"source":1,"set":0,"type":0,"node":[3],"value":[2000000000]}],"order":[{"source":0,"node":[2,0,0],"run":[1,1,1],"set":[0,1,2],"values":[{"type":0,"constant":1000000000}],"times":{"start":1000000000,"step":1000000000,"sample":[0,2],"at":[0,7000000000]}},{"source":1,"node":[3],"run":[2],"set":[0],"values":[{"type":0,"constant":1000000000}],"times":{"start":1000000003,"step":1000000000,"sample":[0],"at":[0]}}],"plumbing":[],"mine":[],"texts":[]}"#;
/// `x` is its only field, since fields of mutants are written in the order of their names.
const PROFVIS: &str = r#"{"x":{"message":{"prof":{"time":[1,1,1,2,2,4],"depth":[3,2,1,1,2,1],"label":["g()","f","main","main","<GC>","main"],"filenum":[1,1,1,1,null,1],"linenum":[2,3,4,4,null,4]},"interval":10,"files":[{"filename":"a.R","content":"f <- function() {\n  g()\n}\nmain()\n"}]}}}"#;

pub const FORMATS: [(&Format, &str); 2] = [(&page::FORMAT, PAGE), (&profvis::FORMAT, PROFVIS)];

/// A page of the format with these data; for other formats the data themselves.
pub fn with_data(format: &Format, data: String) -> Vec<u8> {
    let text = if *format == page::FORMAT {
        // The data may be uncompressed.
        format!(
            "<!DOCTYPE html>\n<meta name=\"generator\" content=\"profile\">\n\
             <script id=\"data\" type=\"application/octet-stream\">{}</script>\n",
            BASE64.encode(data.as_bytes())
        )
    } else if *format == profvis::FORMAT {
        format!(
            "<!DOCTYPE html>\n<div class=\"profvis html-widget\"></div>\n\
             <script type=\"application/json\" data-for=\"w\">{data}</script>\n"
        )
    } else {
        data
    };
    text.into_bytes()
}
