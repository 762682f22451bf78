//! What needs tools of its own to be seen: a real client of the same SDK on the other end of a pipe.

#![expect(deprecated, reason = "sampling goes, but clients of all but the newest version have it")]

use super::{ClientHolder, DecisionPlace, Door, Options, Server, TASK_AFTER};
use haft_core::{CallError, Caller, Dialect, SessionId, ToolSpec};
use haft_runtime::{BoxFuture, Form, Haft, Reply, Scene, Settings, Tool, Workspace, Written, Yes};
use haft_store::Store;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig,
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorCode,
    ErrorData, Implementation, ProtocolVersion, SamplingMessage, ServerNotification, SubscriptionFilter,
};
use rmcp::service::{NotificationContext, QuitReason, RequestContext, RunningService};
use rmcp::{ClientHandler, ClientLifecycleMode, RoleClient, serve_client_with_lifecycle, serve_server};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

type Work = for<'a> fn(&'a Scene) -> BoxFuture<'a, Result<Reply, CallError>>;

struct Plain(Arc<ToolSpec>, Work);

impl Tool for Plain {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }
    fn act<'a>(&'a self, scene: &'a Scene) -> BoxFuture<'a, Result<Reply, CallError>> {
        (self.1)(scene)
    }
}

fn tool(name: &str, work: Work) -> Arc<dyn Tool> {
    Arc::new(Plain(Arc::new(ToolSpec::new(name, "for a test").unwrap()), work))
}

/// Somebody with a model, who fills in forms.
#[derive(Clone, Default)]
struct Person {
    changed: Arc<Notify>,
    /// Neither of them.
    bare: bool,
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let able = ClientCapabilities::builder().enable_elicitation().enable_sampling().build();
        let able = if self.bare { ClientCapabilities::default() } else { able };
        ClientConfig::new(able, Implementation::new("person", "1"))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "heard": message })))
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let said = SamplingMessage::assistant_text("forty-two");
        Ok(CreateMessageResult::new(said, "a-model".to_owned()))
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

/// A server with some tools, and a client.
struct Stage {
    haft: Arc<Haft>,
    client: RunningService<RoleClient, Person>,
    person: Person,
    _server: JoinSet<Result<QuitReason, JoinError>>,
    _dir: tempfile::TempDir,
}

impl Stage {
    async fn with(tools: Vec<Arc<dyn Tool>>) -> Self {
        let mode = ClientLifecycleMode::Initialize;
        Self::set(tools, Person::default(), mode).await
    }

    /// The same in the version in which a client is asked in rounds.
    async fn in_rounds(tools: Vec<Arc<dyn Tool>>, person: Person) -> Self {
        let mode = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
        Self::set(tools, person, mode).await
    }

    async fn set(tools: Vec<Arc<dyn Tool>>, person: Person, mode: ClientLifecycleMode) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("haft.db")).unwrap();
        let data = dir.path().join("data");
        let haft = Arc::new(Haft::new(Workspace::new(dir.path()).unwrap(), store, Settings::new(data)));
        for tool in tools {
            haft.registry().register(tool).unwrap();
        }
        let options = Options {
            dialect: Dialect::Haft,
            caller: Caller::default(),
            session: SessionId::default(),
            session_prefix: "",
            budget_tokens: 0,
            patience: Duration::ZERO,
            elicitation: true,
            holder: ClientHolder::User,
            finish_when_gone: false,
            task_after: TASK_AFTER,
            decision_place: DecisionPlace::Elsewhere(String::new()),
        };
        let server = Server::new(Arc::clone(&haft), options).asking(Arc::new(Yes));
        let door = Door::stdio(server.shared, CancellationToken::new());
        let (here, there) = tokio::io::duplex(1 << 16);
        let mut server = JoinSet::new();
        // In the newest version it has begun with the first request, which comes later.
        server.spawn(async move { Box::pin(serve_server(door, there)).await.unwrap().waiting().await });
        let client = serve_client_with_lifecycle(person.clone(), here, mode).await.unwrap();
        Self { haft, client, person, _server: server, _dir: dir }
    }

    async fn call(&self, name: &'static str) -> Result<CallToolResult, rmcp::ServiceError> {
        self.client.call_tool(CallToolRequestParams::new(name)).await
    }
}

fn text(result: &CallToolResult) -> String {
    result.content[0].as_text().unwrap().text.clone()
}

#[tokio::test]
async fn a_client_hears_that_the_tools_have_changed() {
    let stage = Stage::with(Vec::new()).await;
    let before = stage.client.list_all_tools().await.unwrap();
    stage.haft.registry().register(tool("test.new", |_| Box::pin(async { Ok(Reply::text("new")) }))).unwrap();
    stage.person.changed.notified().await;
    let after = stage.client.list_all_tools().await.unwrap();
    assert_eq!(after.len(), before.len() + 1);
    assert!(after.iter().any(|tool| tool.name == "test_new"));
}

#[tokio::test]
async fn a_tool_that_panics_is_answered_and_ends_nothing() {
    let stage = Stage::with(vec![tool("test.panic", |_| Box::pin(async { panic!("on purpose") }))]).await;
    let result = stage.call("test_panic").await.unwrap();
    assert_eq!(result.is_error, Some(true));
    assert!(text(&result).starts_with("Error (internal): the tool panicked: on purpose"), "{}", text(&result));
    assert!(stage.client.list_all_tools().await.is_ok());
}

/// Asks the model, and says what it said.
const ASK_MODEL: Work = |scene| {
    Box::pin(async move {
        let said = json!([{"role": "user", "content": {"type": "text", "text": "what is it?"}}]);
        let answer = scene.back().sample("test.ask", json!({"maxTokens": 9, "messages": said})).await?;
        Ok(Reply::text(answer["content"]["text"].as_str().unwrap_or_default()))
    })
};

/// Asks the person, and says what they wrote.
const ASK_PERSON: Work = |scene| {
    Box::pin(async move {
        let schema = json!({"type": "object", "properties": {"heard": {"type": "string"}}});
        let form = Form { from: "test.form".to_owned(), message: "\u{1b}[2Jname?".to_owned(), schema };
        match scene.back().elicit(form).await {
            Written::Answer(said) => Ok(Reply::text(said["heard"].as_str().unwrap_or_default())),
            other => Err(CallError::failed(format!("{other:?}"))),
        }
    })
};

/// Asks both, one after the other.
const ASK_BOTH: Work = |scene| {
    Box::pin(async move {
        let (first, second) = (ASK_PERSON(scene).await?, ASK_MODEL(scene).await?);
        Ok(Reply::text(format!("{} {}", first.text, second.text)))
    })
};

#[tokio::test]
async fn a_tool_may_ask_the_clients_model() {
    let stage = Stage::with(vec![tool("test.ask", ASK_MODEL)]).await;
    assert_eq!(text(&stage.call("test_ask").await.unwrap()), "forty-two");
}

#[tokio::test]
async fn a_tool_may_ask_the_person_and_its_words_cannot_act() {
    let stage = Stage::with(vec![tool("test.form", ASK_PERSON)]).await;
    let said = text(&stage.call("test_form").await.unwrap());
    assert!(said.contains("test.form asks: ") && said.contains("name?") && !said.contains('\u{1b}'), "{said}");
}

#[tokio::test]
async fn in_rounds_a_tool_may_ask_the_person_and_then_the_model() {
    let stage = Stage::in_rounds(vec![tool("test.both", ASK_BOTH)], Person::default()).await;
    let said = text(&stage.call("test_both").await.unwrap());
    assert!(said.contains("test.form asks: ") && said.ends_with("forty-two"), "{said}");
}

#[tokio::test]
async fn in_rounds_what_is_no_answer_is_asked_again_and_an_answer_counts_once() {
    let stage = Stage::in_rounds(vec![tool("test.form", ASK_PERSON)], Person::default()).await;
    let call = |answer: Option<(&str, serde_json::Value)>, state: Option<String>| {
        let mut request = CallToolRequestParams::new("test_form");
        request.input_responses = answer.map(|(key, value)| [(key.to_owned(), value)].into());
        request.request_state = state;
        stage.client.call_tool_once(request)
    };
    let asked = |response: CallToolResponse| match response {
        CallToolResponse::InputRequired(told) => {
            assert!(told.input_requests.unwrap().contains_key("form"));
            told.request_state
        }
        other => panic!("{other:?}"),
    };
    let answer = json!({"action": "accept", "content": {"heard": "me"}});
    // A form that its tool gave no name cannot be answered before it is asked.
    let mut word = asked(call(Some(("form", answer.clone())), None).await.unwrap());
    for wrong in [None, Some(("other", answer.clone())), Some(("form", json!(12345)))] {
        let next = asked(call(wrong, word.clone()).await.unwrap());
        assert_ne!(next, word);
        word = next;
    }
    let done = call(Some(("form", answer.clone())), word.clone()).await.unwrap();
    assert!(matches!(&done, CallToolResponse::Complete(result) if text(result) == "me"), "{done:?}");
    let again = call(Some(("form", answer)), word).await.unwrap_err().to_string();
    assert!(again.contains("call the tool anew"), "{again}");
}

#[tokio::test]
async fn in_rounds_a_client_that_lacks_what_a_tool_needs_is_told() {
    let tools = vec![tool("test.ask", ASK_MODEL), tool("test.form", ASK_PERSON)];
    let stage = Stage::in_rounds(tools, Person { bare: true, ..Person::default() }).await;
    for (name, needed) in [("test_ask", "sampling"), ("test_form", "elicitation")] {
        let Err(rmcp::ServiceError::McpError(error)) = stage.call(name).await else { panic!("{name} went well") };
        assert_eq!(error.code, ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY);
        assert!(error.data.unwrap()["requiredCapabilities"][needed].is_object());
    }
}

#[tokio::test]
async fn in_the_newest_version_a_client_that_subscribed_hears_that_the_tools_have_changed() {
    let stage = Stage::in_rounds(Vec::new(), Person::default()).await;
    let wanted = SubscriptionFilter::builder().tools_list_changed().build();
    let mut heard = stage.client.peer().listen(wanted).await.unwrap();
    stage.haft.registry().register(tool("test.new", |_| Box::pin(async { Ok(Reply::text("new")) }))).unwrap();
    let told = heard.next().await.unwrap().unwrap();
    assert!(matches!(told, ServerNotification::ToolListChangedNotification(_)), "{told:?}");
}
