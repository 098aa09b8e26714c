#include "stagecraft/actors/watch/watch.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/actors/watch/http_server.h"
#include "stagecraft/actors/watch/metrics_text.h"
#include "stagecraft/actors/watch/state_json.h"
#include "stagecraft/actors/watch/watch_access.h"
#include "stagecraft/actors/watch/watch_board.h"
#include "stagecraft/base/clock.h"
#include "stagecraft/scheduler/render/html/run_page.h"

namespace stagecraft {
namespace {

/// Events come at most this often, and those who follow learn within both times together that a
/// run lives.
constexpr std::chrono::milliseconds kEventRest{250};
constexpr std::chrono::milliseconds kEventWait{650};

/// The time between two looks at a step that may be late.
constexpr std::chrono::milliseconds kLateLook{250};

/// The longest that the end of a run waits until those who watch have its last state.
constexpr std::chrono::milliseconds kFarewell{1500};

constexpr const char* kJsonType = "application/json";

/// Returns the events of a run for one who follows: its state whenever it has changed and while a
/// step runs, else a comment. A timeline that it has had is left out. Ends after the state in which
/// the run has ended.
std::function<std::optional<std::string>()> events_of(WatchBoard& board) {
  struct Events {
    explicit Events(WatchBoard& of) : follower(of) {}

    WatchBoard::Follower follower;
    std::uint64_t seen = 0;
    std::shared_ptr<const MeasuredStep> timeline;  ///< the last one sent; null at first
    bool ended = false;
  };
  return [&board, e = std::make_shared<Events>(board)]() -> std::optional<std::string> {
    if (e->ended) {
      return std::nullopt;
    }
    const std::chrono::milliseconds rest = e->seen == 0 ? std::chrono::milliseconds(0) : kEventRest;
    const bool changed = board.wait_for_change(e->seen, rest, kEventWait);
    const WatchedState state = board.look();
    if (!changed && state.running_seconds == 0.0) {
      return ": nothing new\n\n";
    }
    const bool is_known = e->timeline != nullptr && e->timeline == state.last.timeline;
    e->timeline = state.last.timeline;
    e->ended = state.phase == WatchPhase::Ended;
    return "data: " + state_json(state, is_known ? StateParts::WithoutTimeline : StateParts::All) +
           "\n\n";
  };
}

/// Answers a request that changes the run: 202 if the run will follow it, 409 with the reason if it
/// cannot.
HttpAnswer wish_answer(const char* why_not) {
  if (why_not == nullptr) {
    return {.status = 202,
            .type = kJsonType,
            .body = R"({"stagecraft":"watch","version":1,"accepted":true})"
                    "\n"};
  }
  return {.status = 409,
          .type = kJsonType,
          .body = fmt::format(R"({{"stagecraft":"watch","version":1,"accepted":false,"why":"{}"}})"
                              "\n",
                              why_not)};
}

/// StepInProgress shows a step as in progress while it lives.
class StepInProgress {
 public:
  explicit StepInProgress(WatchBoard& board) : board_(board) { board_.begin_step(); }
  ~StepInProgress() { board_.leave_step(); }
  StepInProgress(const StepInProgress&) = delete;
  StepInProgress& operator=(const StepInProgress&) = delete;

 private:
  WatchBoard& board_;
};

/// WaitsShown shows who waits for whom while it lives and somebody looks. A thread asks, so that
/// the result of the step does not wait for silent ranks. Its end waits for the answer in progress.
class WaitsShown {
 public:
  WaitsShown(WatchBoard& board, Trainer& trainer)
      : board_(board), trainer_(trainer), thread_(clock_->start([this] { ask(); })) {}
  ~WaitsShown() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.reset();
  }
  WaitsShown(const WaitsShown&) = delete;
  WaitsShown& operator=(const WaitsShown&) = delete;

 private:
  void ask() noexcept {
    try {
      std::unique_lock lock(mutex_);
      while (!ends_) {
        lock.unlock();
        if (board_.is_looked_at()) {
          board_.set_waits(trainer_.waits());
        }
        lock.lock();
        clock_->wait_until(changed_, lock, clock_->now() + kLateLook, [&] { return ends_; });
      }
    } catch (const std::exception&) {  // the step's own error tells why
    }
  }

  const std::shared_ptr<const Clock> clock_ = Clock::current();
  WatchBoard& board_;
  Trainer& trainer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::unique_ptr<Clock::Thread> thread_;
};

}  // namespace

struct Watch::Impl {
  WatchBoard board;
  const bool takes_checkpoints;
  const std::string title;
  WatchPlace place;
  const std::string token = make_token();
  const std::optional<HttpTls> tls;
  std::atomic<bool> opened{false};
  std::unique_ptr<HttpServer> server;  ///< ends first: it uses all others

  Impl(WatchedRun run, const std::string& where)
      : board(run),
        takes_checkpoints(run.takes_checkpoints),
        title(run.model + " by " + run.schedule),
        place(parse_watch_place(where)),
        tls(needs_tls(place) ? std::make_optional<HttpTls>(host_of_link(place)) : std::nullopt) {}

  [[nodiscard]] HttpAnswer answer(const HttpRequest& request) {
    if (!may_watch(request, place, token)) {
      return {.status = 403};
    }
    if (request.has_body) {
      return {.status = 413};
    }
    if (request.method == "GET") {
      return shown(request.path);
    }
    return request.method == "POST" ? wished(request.path) : HttpAnswer{.status = 405};
  }

  [[nodiscard]] HttpAnswer shown(const std::string& path) {
    if (path == "/") {
      return {.type = "text/html; charset=utf-8",
              .body = render_run_page(title, state_json(board.look()))};
    }
    if (path == "/state") {
      // Those who ask again and again are to have the last state, too.
      auto follower = std::make_shared<WatchBoard::Follower>(board);
      return {.type = kJsonType, .body = state_json(board.look()) + '\n', .held = follower};
    }
    if (path == "/metrics") {
      return {.type = "text/plain; version=0.0.4; charset=utf-8",
              .body = metrics_text(board.state())};
    }
    if (path == "/events") {
      return {.type = "text/event-stream", .stream = events_of(board)};
    }
    return {.status = 404};
  }

  [[nodiscard]] HttpAnswer wished(const std::string& path) {
    if (path == "/checkpoint") {
      return takes_checkpoints
                 ? wish([](WatchWishes& wishes) { wishes.checkpoint = true; })
                 : wish_answer("the run has no folder for checkpoints: give --save-dir DIR");
    }
    if (path == "/stop") {
      return wish([](WatchWishes& wishes) { wishes.stop = true; });
    }
    if (path == "/pause" || path == "/continue") {
      return wish([pause = path == "/pause"](WatchWishes& wishes) { wishes.pause = pause; });
    }
    return {.status = 404};
  }

  template <class Change>
  [[nodiscard]] HttpAnswer wish(Change&& change) {
    return wish_answer(board.wish(change) ? nullptr : "the run has ended or is about to");
  }
};

Watch::Watch(WatchedRun run, const std::string& place)
    : impl_(std::make_unique<Impl>(std::move(run), place)) {
  impl_->server = std::make_unique<HttpServer>(
      impl_->place.address,
      impl_->place.port,
      [impl = impl_.get()](const HttpRequest& request) {
        impl->opened.wait(false);  // the place has its port then
        return impl->answer(request);
      },
      impl_->tls ? &*impl_->tls : nullptr);
  impl_->place.port = impl_->server->port();
  impl_->opened = true;
  impl_->opened.notify_all();
}

Watch::~Watch() {
  end("its program has ended it");
  impl_->board.wait_for_followers(kFarewell);
}

std::string Watch::link() const {
  return watch_link(impl_->place, impl_->token, fingerprint());
}

std::string Watch::fingerprint() const {
  return impl_->tls ? impl_->tls->fingerprint() : "";
}

void Watch::begin_after(std::int64_t step) {
  impl_->board.begin_after(step);
}

StepResult Watch::wait(const StepFuture& step, Trainer& trainer) {
  const StepInProgress in_progress(impl_->board);
  const std::shared_ptr<const Clock> clock = Clock::current();
  std::optional<WaitsShown> shown;
  while (!step.wait_until(clock->now() + kLateLook)) {
    if (!shown && impl_->board.is_late()) {
      try {
        shown.emplace(impl_->board, trainer);
      } catch (const std::system_error&) {  // no thread: the run goes on without
      }
    }
  }
  return step.get();
}

void Watch::step(const StepResult& result,
                 std::int64_t counted,
                 std::shared_ptr<const MeasuredStep> timeline) {
  impl_->board.end_step({.step = result.step,
                         .loss = result.mean_loss,
                         .seconds = result.seconds,
                         .bubble = result.bubble,
                         .learning_rate = result.learning_rate,
                         .gradient_norm = result.gradient_norm,
                         .ranks = result.ranks,
                         .timeline = std::move(timeline)},
                        counted);
}

void Watch::set_routes(std::vector<std::vector<Route>> routes) {
  impl_->board.set_routes(std::move(routes));
}

void Watch::set_places(const std::vector<std::string>& places) {
  impl_->board.set_places(places);
}

void Watch::healed(const WatchedHealing& more) {
  impl_->board.add_healing(more);
}

void Watch::saved(std::int64_t step, const std::string& path) {
  impl_->board.add_checkpoint(step, path);
}

void Watch::message(const std::string& text) {
  impl_->board.add_message(text);
}

bool Watch::wants_checkpoint() {
  return impl_->board.take_checkpoint_wish();
}

bool Watch::wants_end() const {
  return impl_->board.wishes().stop;
}

bool Watch::wants_pause(std::chrono::milliseconds limit) {
  return impl_->board.wait_paused(limit);
}

void Watch::take_no_wishes() {
  impl_->board.take_no_wishes();
}

void Watch::end(const std::string& how) {
  impl_->board.end(how);
}

}  // namespace stagecraft
