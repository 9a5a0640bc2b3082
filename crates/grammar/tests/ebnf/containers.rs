//! Objects and arrays that count: they print as they are read, are saved, and lose what matches nothing.

use stencilm_grammar::{ErrorKind, Grammar, Items, Members, Node, Repeats};

fn read(text: &str) -> Grammar {
    let grammar = Grammar::from_ebnf(text, "root").unwrap_or_else(|error| panic!("{error}\n{text}"));
    let printed = grammar.to_string();
    let again = Grammar::from_ebnf(&printed, "root").unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(again.to_string(), printed);
    let loaded = Grammar::deserialize_json(&grammar.serialize_json()).expect("what was saved can be read");
    assert_eq!(loaded.to_string(), printed);
    grammar
}

fn object(grammar: &Grammar) -> &Members {
    let found = grammar.nodes().iter().find_map(|node| match node {
        Node::Members(id) => Some(grammar.members(*id)),
        _ => None,
    });
    found.expect("there is an object")
}

fn array(grammar: &Grammar) -> &Items {
    &grammar.all_items()[0]
}

fn refused(text: &str) -> (ErrorKind, String) {
    let error = Grammar::from_ebnf(text, "root").expect_err("it is refused");
    (error.kind, error.message)
}

const STRING: &str = r#"string ::= "\"" [a-z]* "\"" "#;

#[test]
fn objects_count_members_and_have_classes_of_others() {
    let grammar = read(&format!(
        r#"root ::= %object {{
             count {{1,4}};
             member "a": "1";
             mixed;
             optional "b": "2";
             taken "a" "b";
             others = "\"x" [a-z]* "\"" : "3" | "4";
             some : "4";
             taken;
             others = "\"y" [a-z]* "\"" : string;
           }}
           {STRING}"#
    ));
    let members = object(&grammar);
    assert_eq!((members.ordered, members.min, members.max), (1, 1, Some(4)));
    assert_eq!(members.additional.len(), 2);
    assert_eq!(members.additional[0].reserved.len(), 2);
    assert!(members.additional[0].some.is_some() && members.additional[1].some.is_none());
    assert!(members.additional[1].reserved.is_empty());
}

#[test]
fn arrays_count_elements() {
    let grammar = read(&format!(
        r#"root ::= %array {{
             count {{2,5}};
             contains odd {{1,}};
             contains big {{0,2}};
             unique;
             place : "1";
             also odd : "2";
             place odd big : string;
             rest : "3";
             rest big odd : "4";
           }}
           {STRING}"#
    ));
    let items = array(&grammar);
    assert_eq!((items.min, items.max, items.is_unique()), (2, Some(5), true));
    assert_eq!(items.contains, [(1, None), (0, Some(2))]);
    let counts = |place: usize| items.at(place).iter().map(|element| element.counts).collect::<Vec<_>>();
    assert_eq!((counts(0), counts(1), counts(2)), (vec![0, 1], vec![3], vec![0, 3]));
}

#[test]
fn counters_may_decide_when_values_run_out() {
    let cases = [
        ("unique;", Repeats::Never { counted: false }),
        ("unique counted;", Repeats::Never { counted: true }),
        ("repeated;", Repeats::Required),
        ("", Repeats::Any),
    ];
    for (how, expected) in cases {
        let grammar = read(&format!(r#"root ::= %array {{ {how} contains c {{0,1}}; rest c : "1"; rest : [2-9]+; }}"#));
        for same in
            [&grammar, &Grammar::deserialize_json(&grammar.serialize_json()).expect("what was saved can be read")]
        {
            let items = array(same);
            assert_eq!(items.repeats, expected, "{how}");
            assert_eq!(items.min, if items.must_repeat() { 2 } else { 0 }, "{how}");
        }
    }
    let (_, message) = refused(r#"root ::= %array { unique twice; rest : "1"; }"#);
    assert!(message.contains("`;` must follow `unique`, or `counted;`"), "{message}");
    let (_, message) = refused(r#"root ::= %array { unique; repeated; rest : "1"; }"#);
    assert!(message.contains("no two elements can differ and be equal"), "{message}");
    for bounded in [
        r#"root ::= %array { repeated; count {2,5}; rest : [0-9]+; }"#,
        r#"root ::= %array { repeated; place : "1"; place : "2"; }"#,
        r#"root ::= %array { repeated; contains c {0,1}; rest c : [0-9]+; }"#,
        r#"root ::= %array { repeated; contains c {0,1}; place c : "1"; rest : [0-9]+; }"#,
        r#"root ::= %array { repeated; place : "1"; place : "2"; rest : %bytes[]; }"#,
    ] {
        let (_, message) = refused(bounded);
        assert!(message.contains("not every such array can get two that are"), "{bounded}: {message}");
    }
}

#[test]
fn what_matches_nothing_goes() {
    let grammar = read(
        r#"root ::= %object { optional "a": %bytes[]; optional "b": "1"; mixed; optional "c": "1"; others: %bytes[]; }"#,
    );
    let members = object(&grammar);
    assert_eq!((members.declared.len(), members.ordered, members.additional.len()), (2, 1, 0));
    let grammar = read(r#"root ::= %array { place : "1"; also : %bytes[]; place : %bytes[]; rest : "2"; }"#);
    let items = array(&grammar);
    assert_eq!((items.prefix.len(), items.prefix[0].len(), items.rest.len(), items.max), (1, 1, 0, Some(1)));
}

#[test]
fn what_cannot_be_counted_up_to_is_refused() {
    let bodies = [
        r#"%object { optional "a": "1"; optional "b": "1"; count {3,}; }"#,
        r#"%object { member "a": "1"; member "b": "1"; count {0,1}; }"#,
        r#"%object { others: "1"; some : %bytes[]; }"#,
        r#"%object { member "a": "1"; others: "1"; some : "1"; count {0,1}; }"#,
        r#"%object { optional "a": root; count {1,1}; }"#,
        r#"%array { place : "1"; count {2,}; }"#,
        r#"%array { rest : root; count {1,}; }"#,
        r#"%array { rest : "1"; contains c {1,}; }"#,
        r#"%array { contains c {3,}; rest c : "1"; count {0,2}; }"#,
        r#"%array { contains c {0,1}; rest c : "1"; count {2,}; }"#,
        r#"%array { contains c {2,}; contains d {0,1}; rest : "0"; rest c d : "1"; }"#,
        r#"%array { contains c {1,}; place c : %bytes[]; rest : "1"; }"#,
    ];
    for body in bodies {
        let (kind, message) = refused(&format!("root ::= {body}"));
        assert_eq!(kind, ErrorKind::Unsatisfiable, "{body}: {message}");
    }
    for body in [
        r#"%array { contains c {2,}; contains d {0,1}; rest c : "0"; rest c d : "1"; }"#,
        r#"%array { contains c {2,2}; contains d {2,2}; rest c d : "1"; count {2,2}; }"#,
        r#"%array { contains c {1,1}; place : "1"; rest c : "1"; count {2,2}; }"#,
        r#"%object { optional "a": root; count {0,1}; }"#,
        r#"%array { rest : root; }"#,
    ] {
        read(&format!("root ::= {body}"));
    }
}

#[test]
fn errors_say_what_may_stand_there() {
    for (body, part) in [
        (r#"%array { also : "1"; }"#, "write `place`"),
        (r#"%array { rest c : "1"; }"#, "contains c {1,}"),
        (r#"%array { member "a": "1"; }"#, "place, also, rest"),
        (r#"%array { contains c {1,}; contains c {1,}; }"#, "twice"),
        (r#"%array { rest : ""; }"#, "may be empty"),
        (r#"%array { open = ""; rest : "1"; }"#, "may be empty"),
        (r#"%array { count 3; }"#, "{1,5}"),
        (r#"%object { some : "1"; }"#, "behind the `others`"),
        (r#"%array { rest : "1""#, "closing `}`"),
    ] {
        let (_, message) = refused(&format!("root ::= {body}"));
        assert!(message.contains(part), "{body}: {message}");
    }
}
