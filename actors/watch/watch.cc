#include "stagecraft/actors/watch/watch.h"

#include <atomic>
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

/// The longest that the end of a run waits until those who follow have its last state.
constexpr std::chrono::milliseconds kFarewell{1000};

constexpr const char* kJsonType = "application/json";

/// Returns the events of a run for one who follows: its state whenever it has changed and while a
/// step runs, else a comment. Ends after the state in which the run has ended.
std::function<std::optional<std::string>()> events_of(WatchBoard& board) {
  struct Events {
    explicit Events(WatchBoard& of) : follower(of) {}

    WatchBoard::Follower follower;
    std::uint64_t seen = 0;
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
    e->ended = state.phase == WatchPhase::Ended;
    return "data: " + state_json(state) + "\n\n";
  };
}

HttpAnswer json_answer(std::string body) {
  return {.status = 200, .type = kJsonType, .body = std::move(body) + '\n'};
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

}  // namespace

struct Watch::Impl {
  WatchBoard board;
  const bool takes_checkpoints;
  const std::string title;
  WatchPlace place;
  const std::string token = make_token();
  std::atomic<bool> opened{false};
  std::unique_ptr<HttpServer> server;  ///< ends first: it uses all others

  Impl(WatchedRun run, const std::string& where)
      : board(run),
        takes_checkpoints(run.takes_checkpoints),
        title(run.model + " by " + run.schedule),
        place(parse_watch_place(where)) {}

  [[nodiscard]] HttpAnswer answer(const HttpRequest& request) {
    if (!may_watch(request, place, token)) {
      return {.status = 403};
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
      return json_answer(state_json(board.look()));
    }
    if (path == "/metrics") {
      return {.type = "text/plain; version=0.0.4; charset=utf-8",
              .body = metrics_text(board.look())};
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
    return wish_answer(board.wish(change) ? nullptr : "the run has ended");
  }
};

Watch::Watch(WatchedRun run, const std::string& place)
    : impl_(std::make_unique<Impl>(std::move(run), place)) {
  impl_->server = std::make_unique<HttpServer>(
      impl_->place.address, impl_->place.port, [impl = impl_.get()](const HttpRequest& request) {
        impl->opened.wait(false);  // the place has its port then
        return impl->answer(request);
      });
  impl_->place.port = impl_->server->port();
  impl_->opened = true;
  impl_->opened.notify_all();
}

Watch::~Watch() {
  end("its program has ended it");
  impl_->board.wait_for_followers(kFarewell);
}

std::string Watch::link() const {
  return watch_link(impl_->place, impl_->token);
}

StepResult Watch::wait(const StepFuture& step, Trainer& trainer) {
  impl_->board.begin_step();
  const std::shared_ptr<const Clock> clock = Clock::current();
  while (!step.wait_until(clock->now() + kLateLook)) {
    if (impl_->board.is_late() && impl_->board.is_looked_at()) {
      impl_->board.set_waits(trainer.waits());
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

void Watch::end(const std::string& how) {
  impl_->board.end(how);
}

}  // namespace stagecraft
