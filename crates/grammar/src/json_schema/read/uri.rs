//! References to absolute URIs (RFC 3986, section 5.2): how a relative `$id` or `$ref` is read. Nothing is ever
//! fetched.

/// Resolves `reference` relative to `base`, both without fragments. Without a base, a relative reference stays as it
/// is, so that two with the same spelling still mean the same.
pub(crate) fn resolve(base: &str, reference: &str) -> String {
    if scheme_len(reference).is_some() {
        return reference.into();
    }
    let scheme = scheme_len(base).unwrap_or(0);
    if reference.starts_with("//") {
        return format!("{}{reference}", &base[..scheme]);
    }
    let after = &base[scheme..];
    let authority = match after.strip_prefix("//") {
        Some(rest) => scheme + 2 + rest.find(['/', '?']).unwrap_or(rest.len()),
        None => scheme,
    };
    if reference.is_empty() {
        return base.into();
    }
    let path_end = base[authority..].find('?').map_or(base.len(), |query| authority + query);
    if reference.starts_with('?') {
        return format!("{}{reference}", &base[..path_end]);
    }
    let (path, query) = reference.split_at(reference.find('?').unwrap_or(reference.len()));
    if path.starts_with('/') {
        return format!("{}{}{query}", &base[..authority], without_dots(path));
    }
    let folder = match base[authority..path_end].rfind('/') {
        Some(slash) => &base[authority..=authority + slash],
        // A path after an authority starts with a slash.
        None if authority > scheme => "/",
        // The parts of `urn:a:b` are not folders.
        None => "",
    };
    format!("{}{}{query}", &base[..authority], without_dots(&format!("{folder}{path}")))
}

/// The length of the scheme with its colon.
fn scheme_len(uri: &str) -> Option<usize> {
    let colon = uri.find(':')?;
    let scheme = &uri.as_bytes()[..colon];
    let letters = scheme.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte));
    (scheme.first().is_some_and(u8::is_ascii_alphabetic) && letters).then_some(colon + 1)
}

/// Removes `.` and `..` from a path.
fn without_dots(path: &str) -> String {
    if !path.contains("./") && !path.ends_with('.') {
        return path.into();
    }
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." => {}
            ".." => {
                // The empty segment before the first slash stays.
                if kept.len() > 1 || kept.first().is_some_and(|first| !first.is_empty()) {
                    kept.pop();
                }
            }
            segment => kept.push(segment),
        }
        if is_last && matches!(segment, "." | "..") {
            kept.push("");
        }
    }
    kept.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_resolve() {
        // The table of RFC 3986, section 5.4, except for fragments.
        let base = "http://a/b/c/d;p?q";
        for (reference, expected) in [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g..", "http://a/b/c/g.."),
            ("./../g", "http://a/b/g"),
            ("g/./h", "http://a/b/c/g/h"),
            ("g/../h", "http://a/b/c/h"),
        ] {
            assert_eq!(resolve(base, reference), expected, "{reference}");
        }
        for (base, reference, expected) in [
            ("", "item.json", "item.json"),
            ("", "/item.json", "/item.json"),
            ("http://a", "b", "http://a/b"),
            ("http://a?q", "b", "http://a/b"),
            ("urn:x:y", "", "urn:x:y"),
            ("urn:x:y", "b", "urn:b"),
            ("folder/a.json", "b.json", "folder/b.json"),
            ("folder/a.json", "../b.json", "b.json"),
        ] {
            assert_eq!(resolve(base, reference), expected, "{reference} at {base:?}");
        }
    }
}
