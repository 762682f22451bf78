//! A document as they are found, and documents as nobody should write them.

use super::{Document, manifests, profile};
use haft_core::web::Target;
use serde_json::{Value, json};
use std::fmt::Write as _;

const PETSTORE: &str = include_str!("petstore.yml");

fn read(text: &str) -> Document {
    Document::read(text).unwrap()
}

fn base() -> Target {
    Target::read("https://petstore.example.com/v1").unwrap()
}

/// The manifest of one tool.
fn tool(document: &Document, name: &str) -> Value {
    let (all, _) = manifests(document, "petstore", &base());
    let names: Vec<&str> = all.iter().map(|made| made.name.as_str()).collect();
    let found = all.iter().find(|made| made.name == name);
    found.unwrap_or_else(|| panic!("{name} is not among {names:?}")).manifest.clone()
}

#[test]
fn a_document_is_a_profile() {
    let (profile, warnings) = profile(&read(PETSTORE), None, None).unwrap();
    insta::assert_snapshot!(serde_saphyr::to_string(&profile.shown()).unwrap(), @r#"
    id: petstore
    name: Petstore
    base_url: https://petstore.example.com/v1
    description: "A shop for pets, with everything that a shop has: pets, orders, and people who want them."
    auth:
      type: bearer
      token: ${PETSTORE_TOKEN}
    endpoints:
    - method: GET
      path: /pets
      description: List all pets
    - method: POST
      path: /pets
      description: Create a pet
    - method: PUT
      path: /pets/{petId}
      description: Replace a pet
    - method: DELETE
      path: /pets/{petId}
      description: Delete a pet
    - method: POST
      path: /pets/{petId}/photo
      description: Upload a photo
    guidelines:
    - The endpoints are those of its OpenAPI document; do not guess others
    - Its documentation is at https://petstore.example.com/docs
    "#);
    assert_eq!(warnings, [""; 0]);
}

#[test]
fn a_read_is_a_manifest_that_asks_nobody() {
    insta::assert_snapshot!(serde_saphyr::to_string(&tool(&read(PETSTORE), "petstore_list_pets")).unwrap(), @r#"
    name: petstore_list_pets
    description: List all pets
    kind: http
    version: 1
    inputs:
      schema:
        type: object
        additionalProperties: false
        properties:
          limit:
            type: integer
            format: int32
            minimum: 1
            maximum: 100
            default: 20
            description: How many to give at once
          status:
            type: array
            items:
              type: string
              enum:
              - available
              - sold
          x_trace_id:
            type: string
    outputs:
      format: json
    exec:
      http:
        method: GET
        url: https://petstore.example.com/v1/pets
        headers:
          Authorization: Bearer ${PETSTORE_TOKEN}
          X-Trace-Id: ${x_trace_id}
        query:
          limit: ${limit}
          status: ${status}
    permissions:
      network:
      - petstore.example.com
      fs:
        read: []
        write: []
      secrets:
        PETSTORE_TOKEN:
          type: string
          required: true
    approval:
      required: false
    "#);
}

#[test]
fn a_write_is_a_manifest_that_asks() {
    insta::assert_snapshot!(serde_saphyr::to_string(&tool(&read(PETSTORE), "petstore_create_pet")).unwrap(), @r#"
    name: petstore_create_pet
    description: Create a pet
    kind: http
    version: 1
    inputs:
      schema:
        type: object
        additionalProperties: false
        properties:
          name:
            type: string
          tag:
            type:
            - string
            - "null"
          parent:
            type: object
            required:
            - petId
            - name
            properties:
              petId:
                type: string
              name:
                type: string
              children:
                type: array
                items: {}
        required:
        - name
    outputs:
      format: json
    exec:
      http:
        method: POST
        url: https://petstore.example.com/v1/pets
        headers:
          Authorization: Bearer ${PETSTORE_TOKEN}
          Content-Type: application/json
        body:
          name: ${name}
          tag: ${tag}
          parent: ${parent}
    permissions:
      network:
      - petstore.example.com
      fs:
        read: []
        write: []
      secrets:
        PETSTORE_TOKEN:
          type: string
          required: true
    approval:
      required: true
      reason: Sends a POST request to petstore.example.com:443
    "#);
}

#[test]
fn a_cookie_is_not_sent_and_that_is_told() {
    let mut document: Value = serde_saphyr::from_str(PETSTORE).unwrap();
    document["paths"] = json!({
        "/a": {"get": {"parameters": [{"name": "theme", "in": "cookie", "schema": {"type": "string"}}]}},
        "/b": {"get": {"parameters": [{"name": "sid", "in": "cookie", "required": true, "schema": {"type": "string"}}]}}
    });
    let (all, warnings) = manifests(&read(&document.to_string()), "petstore", &base());
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].warnings, ["petstore_get_a: the cookie `theme` is not sent"]);
    assert_eq!(warnings, ["GET /b has no tool: it needs a cookie"]);
}

#[test]
fn what_goes_where_is_kept_apart() {
    let document = read(PETSTORE);
    let update = tool(&document, "petstore_update_pet");
    assert_eq!(update["exec"]["http"]["url"], "https://petstore.example.com/v1/pets/${pet_id}");
    assert_eq!(update["exec"]["http"]["body"], "${body}", "`petId` is in the path and in the body");
    assert_eq!(update["inputs"]["schema"]["required"], json!(["pet_id", "body"]));
    let delete = tool(&document, "petstore_delete_pets_pet_id");
    assert_eq!(delete["approval"]["reason"], "Sends a DELETE request to petstore.example.com:443");
    assert_eq!(delete["permissions"]["secrets"], json!({}), "it says that it needs none");
    let (all, warnings) = manifests(&document, "petstore", &base());
    assert_eq!(all.len(), 4);
    let told: Vec<String> = all.into_iter().flat_map(|made| made.warnings).chain(warnings).collect();
    assert_eq!(
        told,
        [
            "petstore_create_pet: its schema refers to itself or is very large, and is not said in full",
            "petstore_update_pet: its schema refers to itself or is very large, and is not said in full",
            "POST /pets/{petId}/photo has no tool: it takes multipart/form-data, and manifests send JSON"
        ]
    );
}

#[test]
fn every_manifest_has_what_manifests_have_and_its_schema_compiles() {
    let (all, _) = manifests(&read(PETSTORE), "petstore", &base());
    for made in all {
        let keys: Vec<&String> = made.manifest.as_object().unwrap().keys().collect();
        assert_eq!(
            keys,
            ["name", "description", "kind", "version", "inputs", "outputs", "exec", "permissions", "approval"]
        );
        haft_core::Schema::compile(&made.manifest["inputs"]["schema"]).unwrap();
        let read =
            haft_core::manifest::Manifest::of(made.manifest.clone()).unwrap_or_else(|flaws| panic!("{}", flaws[0]));
        let (written, found) =
            (haft_core::manifest::written::Written::default(), haft_core::manifest::lint::Found::default());
        let flaws = haft_core::manifest::lint::lint(&read, &written, &made.name, &found);
        assert!(flaws.is_empty(), "{}: {}", made.name, flaws[0]);
        let yaml = serde_saphyr::to_string(&made.manifest).unwrap();
        let again: Value = serde_saphyr::from_str(&yaml).unwrap();
        assert_eq!(again, made.manifest, "{yaml}");
    }
}

#[test]
fn what_version_three_point_one_says_is_kept() {
    let document = json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "servers": [{"url": "https://t.test"}],
        "paths": {"/a": {"get": {"parameters": [
            {"name": "n", "in": "query", "schema": {"type": ["integer", "null"], "exclusiveMinimum": 0, "const": 5}},
            {"name": "o", "in": "query", "schema": {"type": "integer", "minimum": 1, "exclusiveMinimum": true, "nullable": true}},
            {"name": "filter[x]", "in": "query", "content": {"application/json": {"schema": {"prefixItems": [{"type": "string"}]}}}}
        ], "responses": {"200": {"content": {"text/csv": {}}}}}}}});
    let made = tool(&read(&document.to_string()), "petstore_get_a");
    let inputs = &made["inputs"]["schema"]["properties"];
    assert_eq!(inputs["n"], json!({"type": ["integer", "null"], "exclusiveMinimum": 0, "const": 5}));
    assert_eq!(inputs["o"], json!({"type": ["integer", "null"], "exclusiveMinimum": 1}));
    assert_eq!(inputs["filter_x"], json!({"prefixItems": [{"type": "string"}]}));
    assert_eq!(made["exec"]["http"]["query"]["filter[x]"], "${filter_x}");
    assert_eq!(made["outputs"]["format"], "text");
}

#[test]
fn what_cannot_be_used_is_said() {
    for (text, expected) in [
        ("", "not an OpenAPI document"),
        ("{", "not an OpenAPI document"),
        ("[1, 2]", "`openapi` is missing"),
        ("openapi: 2.0\npaths: {}", "its version is 2.0"),
        ("swagger: '2.0'", "version 2 (Swagger)"),
        ("openapi: 4.0.0", "its version is 4.0.0"),
        ("a: &a [*a, *a]", "not an OpenAPI document"),
    ] {
        let error = Document::read(text).err().unwrap_or_else(|| panic!("{text} was read"));
        assert!(error.message.contains(expected), "{text}: {}", error.message);
    }
    let bare = read(r#"{"openapi": "3.0.0", "info": {"title": "Bare"}, "paths": {"/a": {"get": {}}}}"#);
    let error = profile(&bare, None, None).unwrap_err();
    assert!(error.message.contains("does not say where"), "{}", error.message);
    for server in ["/v1", "{scheme}://x", "ftp://x.test"] {
        let text = json!({"openapi": "3.0.0", "info": {"title": "Bare"}, "servers": [{"url": server}], "paths": {"/a": {"get": {}}}});
        assert!(profile(&read(&text.to_string()), None, None).is_err(), "{server}");
    }
    let (made, _) = profile(&bare, None, Some("https://bare.test/")).unwrap();
    assert_eq!((made.id.as_str(), made.base_url.as_str(), made.auth), ("bare", "https://bare.test", None));
    assert!(profile(&bare, Some("../x"), Some("https://bare.test/")).is_err());
    let empty = read(r#"{"openapi": "3.0.0", "info": {"title": "Empty"}, "paths": {}}"#);
    let error = profile(&empty, None, Some("https://e.test")).unwrap_err();
    assert!(error.message.contains("endpoints: at least one"), "{}", error.message);
}

#[test]
fn cycles_and_bombs_end() {
    // Each schema has the next one twice: two to the power of forty of them, if nobody counted.
    let mut schemas = serde_json::Map::new();
    for level in 0..40 {
        let next = json!({"$ref": format!("#/components/schemas/S{}", level + 1)});
        schemas.insert(format!("S{level}"), json!({"type": "object", "properties": {"a": next, "b": next}}));
    }
    schemas.insert("S40".to_owned(), json!({"$ref": "#/components/schemas/S40"}));
    schemas.insert(
        "Node".to_owned(),
        json!({"type": "object", "required": ["next", "id"],
        "properties": {"id": {"type": "string", "readOnly": true}, "next": {"$ref": "#/components/schemas/Node"}}}),
    );
    let body = |name: &str| {
        json!({"post": {"requestBody": {"content": {"application/json": {"schema":
        {"$ref": format!("#/components/schemas/{name}")}}}}}})
    };
    let document = json!({"openapi": "3.0.3", "info": {"title": "Bomb"}, "servers": [{"url": "https://b.test"}],
        "components": {"schemas": schemas},
        "paths": {"/bomb": body("S0"), "/self": body("S40"), "/node": body("Node"), "/gone": body("Nowhere"),
            "/far": {"get": {"parameters": [{"name": "x", "in": "query", "schema": {"$ref": "https://evil.test/s.json"}}]}},
            "/ref": {"$ref": "#/paths/~1ref"}, "/alias": {"$ref": "#/paths/~1node"}, "/hole/{x}": {"get": {}},
            "/odd": {"get": 7, "post": {"parameters": [{}, 5]}, "put": {"parameters": "x", "requestBody": {"content": []}}}}});
    let document = read(&document.to_string());
    let (all, warnings) = manifests(&document, "petstore", &base());
    let names: Vec<&str> = all.iter().map(|made| made.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "petstore_post_bomb",
            "petstore_post_self",
            "petstore_post_node",
            "petstore_post_gone",
            "petstore_get_far",
            "petstore_post_alias",
            "petstore_put_odd"
        ]
    );
    assert!(all.iter().all(|made| made.manifest.to_string().len() < 200_000));
    let node = &all[2].manifest["inputs"]["schema"];
    assert_eq!(node["properties"]["next"], json!({"type": "object", "required": ["next"], "properties": {"next": {}}}));
    assert!(
        warnings.iter().any(|line| line == "GET /hole/{x} has no tool: its path has a part that is not declared"),
        "{warnings:?}"
    );
    profile(&document, None, None).unwrap();
}

#[test]
fn a_huge_document_is_an_outline_of_bounded_size() {
    let mut text = "openapi: 3.0.0\ninfo: {title: Huge}\nservers: [{url: 'https://h.test'}]\npaths:\n".to_owned();
    for number in 0..3000 {
        let _ = writeln!(text, "  /things/{number}: {{get: {{summary: {}}}}}", "word ".repeat(100));
    }
    let (profile, warnings) = profile(&read(&text), None, None).unwrap();
    assert!((500..=1000).contains(&profile.endpoints.len()), "{}", profile.endpoints.len());
    assert!(warnings[0].contains("of 3000 operations"), "{warnings:?}");
    assert!(Document::read(&"x".repeat(super::BYTES_MAX + 1)).is_err());
}

#[test]
fn a_name_is_given_once() {
    let document = json!({"openapi": "3.0.0", "info": {"title": "T"}, "paths": {
        "/a": {"get": {"operationId": "Get Thing!"}, "post": {"operationId": "getThing"}},
        "/b": {"get": {"operationId": "getThing"}}, "/c": {"get": {"operationId": "../../etc/passwd"}}}});
    let (all, _) = manifests(&read(&document.to_string()), "9lives", &base());
    let names: Vec<&str> = all.iter().map(|made| made.name.as_str()).collect();
    assert_eq!(
        names,
        ["api_9lives_get_thing", "api_9lives_get_thing_2", "api_9lives_get_thing_3", "api_9lives_etc_passwd"]
    );
}
