/// Tests the curve and the board of a watched run, and what is written of its state.

#include "stagecraft/actors/watch/watch_board.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include <nlohmann/json.hpp>

#include "stagecraft/actors/watch/metrics_text.h"
#include "stagecraft/actors/watch/state_json.h"
#include "stagecraft/base/manual_clock.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using std::chrono::milliseconds;

constexpr milliseconds kAtOnce{0};
constexpr milliseconds kLong{60'000};

WatchedRun two_ranks() {
  return {.model = "a \"model\"",
          .schedule = "1f1b",
          .steps = 10,
          .ranks = {{"0", "thread", 4096}, {"1", "thread", 0}},
          .ranks_of_rows = {{0}, {1}},
          .takes_checkpoints = true};
}

/// Returns a step in which row 1 waits for row 0.
std::shared_ptr<const MeasuredStep> measured_rows() {
  const auto task = [](CellKind kind, int stage) {
    return Task{kind, StageId(stage), Microbatch(0)};
  };
  MeasuredStep step;
  step.time = {10, 20};
  step.rows.resize(2);
  step.rows[0].tasks = {{task(CellKind::Forward, 0), {10, 12}, {}}};
  step.rows[1].tasks = {{task(CellKind::Forward, 1), {11, 12}, {}},
                        {task(CellKind::Backward, 1),
                         {16, 20},
                         {{.from_row = 0, .made = 13, .arrived = 15, .bytes = 8}}}};
  return std::make_shared<const MeasuredStep>(step);
}

WatchedStep second_step() {
  return {.step = 2,
          .loss = 1.5,
          .seconds = 0.5,
          .bubble = 0.25,
          .ranks = {{.forward = 0.1, .memory = {.live = 1, .cached = 2, .peak = 3}}, {}},
          .timeline = measured_rows()};
}

/// Holds a metrics page as a scraper reads it: the value by name and labels, and the type by name.
struct Scraped {
  std::map<std::string, double> values;
  std::map<std::string, std::string> types;
};

/// Reads the text format, and REQUIREs that each line has its form and each metric its head.
Scraped scrape(const std::string& text) {
  const std::regex head("# (HELP|TYPE) ([a-z_]+) (.+)");
  const std::string label = R"re([a-z_]+="(?:[^"\\\n]|\\["\\n])*")re";
  const std::regex value("([a-z_]+)(\\{" + label + "(?:," + label +
                         ")*\\})? (NaN|[+-]Inf|[-+0-9.e]+)");
  Scraped found;
  REQUIRE(text.ends_with('\n'));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    std::smatch parts;
    if (std::regex_match(line, parts, head)) {
      if (parts[1] == "TYPE") {
        CHECK((parts[3] == "gauge" || parts[3] == "counter"));
        CHECK((parts[3] == "counter") == parts[2].str().ends_with("_total"));
        CHECK(found.types.emplace(parts[2], parts[3]).second);
      }
      continue;
    }
    REQUIRE(std::regex_match(line, parts, value));
    CHECK(found.types.contains(parts[1]));
    CHECK(found.values.emplace(parts[1].str() + parts[2].str(), std::stod(parts[3])).second);
  }
  return found;
}

/// Returns the names of metrics in a text.
std::set<std::string> metric_names(const std::string& text) {
  const std::regex name("stagecraft_[a-z_]+");
  std::set<std::string> names;
  for (auto found = std::sregex_iterator(text.begin(), text.end(), name);
       found != std::sregex_iterator();
       ++found) {
    names.insert(found->str());
  }
  return names;
}

/// Returns the page of a run of which every metric has a value.
Scraped whole_page() {
  WatchBoard board(two_ranks());
  board.set_routes({{Route::HandOver, Route::SharedMemory}, {Route::Socket, Route::HandOver}});
  board.end_step(second_step(), 64);
  return scrape(metrics_text(board.look()));
}

}  // namespace

TEST_CASE("a curve of any length has few points at equal distances, and the last",
          "[actors][watch]") {
  WatchCurve curve;
  CHECK(curve.points().empty());
  constexpr std::int64_t kSteps = 100'000;
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    curve.add({.step = step, .loss = 1.0 / static_cast<double>(step)});
    CHECK(curve.points().size() <= WatchCurve::kMost + 1);
    if (step % 20'011 != 0) {
      continue;
    }
    const std::vector<WatchPoint> points = curve.points();
    REQUIRE(points.size() > WatchCurve::kMost / 2);
    CHECK(points.front().step == 1);
    CHECK(points.back().step == step);
    for (std::size_t i = 2; i + 1 < points.size(); ++i) {
      CHECK(points[i].step - points[i - 1].step == points[1].step - points[0].step);
    }
  }
}

TEST_CASE("the state has what the run wrote", "[actors][watch]") {
  WatchBoard board(two_ranks());
  board.set_routes({{Route::HandOver, Route::SharedMemory}, {Route::Socket, Route::HandOver}});
  board.end_step(second_step(), 64);
  board.add_checkpoint(2, "runs/step-2.ckpt");
  board.add_message("a note");
  board.add_healing({.restarts = 2, .seconds = 0.5});
  board.add_healing({.repeated_steps = 1});
  board.add_healing({.restarts = 1, .seconds = 0.25});
  const auto state = nlohmann::json::parse(state_json(board.look()));
  CHECK(state["phase"] == "running");
  CHECK(state["model"] == "a \"model\"");
  CHECK(state["step"] == 2);
  CHECK(state["per_second"] == 128.0);
  CHECK(state["counted_total"] == 64);
  CHECK(state["restarts"] == 3);
  CHECK(state["repeated_steps"] == 1);
  CHECK(state["healing_seconds"] == 0.75);
  CHECK(state["curve"]["loss"] == nlohmann::json::array({1.5}));
  CHECK(state["ranks"][0]["billed_bytes"] == 4096);
  CHECK_FALSE(state["ranks"][1].contains("billed_bytes"));
  CHECK(state["ranks"][0]["peak_bytes"] == 3);
  CHECK(state["sent"] == nlohmann::json::array({{{"route", "shared memory"}, {"bytes", 8}}}));
  CHECK(state["checkpoints"][0]["file"] == "runs/step-2.ckpt");
  CHECK(state["messages"][0] == nlohmann::json({{"step", 2}, {"text", "a note"}}));
  const auto& row = state["timeline"]["rows"][1];
  CHECK(state["timeline"]["makespan_seconds"] == 10.0);
  CHECK(row["cells"][1]["cell"] == "1B0");
  CHECK(row["waits"] == nlohmann::json::parse(R"([
          {"cause":"warm_up","start_seconds":0.0,"end_seconds":1.0},
          {"cause":"dependency","start_seconds":2.0,"end_seconds":3.0},
          {"cause":"communication","start_seconds":3.0,"end_seconds":5.0},
          {"cause":"overhead","start_seconds":5.0,"end_seconds":6.0}])"));
}

TEST_CASE("a state before the first step, and with a loss that is no number, can be read",
          "[actors][watch]") {
  WatchBoard board(two_ranks());
  board.begin_after(7);
  const auto none = nlohmann::json::parse(state_json(board.look()));
  CHECK(none["timeline"].is_null());
  CHECK(none["step"] == 7);
  for (const char* figure :
       {"loss", "seconds", "per_second", "bubble_fraction", "learning_rate", "gradient_norm"}) {
    CHECK(none[figure].is_null());
  }
  const Scraped before = scrape(metrics_text(board.look()));
  CHECK(before.values.at("stagecraft_step") == 7);
  CHECK_FALSE(before.values.contains("stagecraft_loss"));
  CHECK_FALSE(before.values.contains("stagecraft_step_seconds"));
  board.end_step({.step = 1, .loss = std::numeric_limits<double>::quiet_NaN()}, 1);
  CHECK(nlohmann::json::parse(state_json(board.look()))["loss"].is_null());
  CHECK(std::isnan(scrape(metrics_text(board.look())).values.at("stagecraft_loss")));
}

TEST_CASE("metrics have the format and the figures", "[actors][watch]") {
  WatchBoard board(two_ranks());
  board.set_routes({{Route::HandOver, Route::SharedMemory}, {Route::Socket, Route::HandOver}});
  board.end_step(second_step(), 64);
  board.add_checkpoint(2, "file");
  board.add_healing({.restarts = 2, .repeated_steps = 1, .seconds = 0.5});
  const Scraped found = scrape(metrics_text(board.look()));
  const auto value = [&](const std::string& name) { return found.values.at("stagecraft_" + name); };
  CHECK(value("run_info{model=\"a \\\"model\\\"\",schedule=\"1f1b\"}") == 1);
  CHECK(value("step") == 2);
  CHECK(value("loss") == 1.5);
  CHECK(value("counted_total{of=\"samples\"}") == 64);
  CHECK(value("sent_bytes_total{route=\"shared memory\"}") == 8);
  CHECK(value("wait_seconds{row=\"1\",cause=\"communication\"}") == 2);
  CHECK(value("rank_memory_bytes{rank=\"0\",kind=\"peak\"}") == 3);
  CHECK(value("rank_billed_bytes{rank=\"0\"}") == 4096);
  CHECK(value("checkpoints_total") == 1);
  CHECK(value("restarts_total") == 2);
  CHECK(value("repeated_steps_total") == 1);
  CHECK(value("healing_seconds_total") == 0.5);
  CHECK(value("ended") == 0);
}

TEST_CASE("the dashboard asks for metrics that a run serves, by labels that they have",
          "[actors][watch]") {
  const Scraped served = whole_page();
  const auto dashboard = nlohmann::json::parse(
      stagecraft::tests::read_text_file(STAGECRAFT_SOURCE_DIR "/docs/watch-dashboard.json"));
  // Each name, one condition on a label at most, and the label by which values are summed or named.
  const std::regex queried(R"re((?:sum by \(([a-z]+)\) )?.*(stagecraft_[a-z_]+)(\{[^{}]+\})?.*)re");
  const std::regex legend_label(R"(\{\{([a-z]+)\}\})");
  std::set<std::string> drawn;
  for (const auto& panel : dashboard.at("panels")) {
    for (const auto& target : panel.at("targets")) {
      const std::string query = target.at("expr");
      CAPTURE(query);
      std::smatch parts;
      REQUIRE(std::regex_match(query, parts, queried));
      drawn.insert(parts[2]);
      std::set<std::string> wanted;
      if (parts[1].matched) {
        wanted.insert(parts[1].str() + "=\"");
      }
      if (parts[3].matched) {
        wanted.insert(parts[3].str().substr(1, parts[3].length() - 2));
      }
      const std::string legend = target.value("legendFormat", "");
      for (auto label = std::sregex_iterator(legend.begin(), legend.end(), legend_label);
           label != std::sregex_iterator();
           ++label) {
        if ((*label)[1] != "instance") {  // which Prometheus adds
          wanted.insert((*label)[1].str() + "=\"");
        }
      }
      CHECK(std::ranges::any_of(served.values, [&](const auto& value) {
        const std::string& name = value.first;
        return name.substr(0, name.find('{')) == parts[2] &&
               std::ranges::all_of(wanted, [&](const std::string& text) {
                 return name.find(text) != std::string::npos;
               });
      }));
    }
  }
  for (const char* counter : {"restarts_total", "repeated_steps_total", "healing_seconds_total"}) {
    CHECK(drawn.contains(std::string("stagecraft_") + counter));
  }
}

TEST_CASE("the page about watching lists the metrics that a run serves", "[actors][watch]") {
  std::set<std::string> served;
  for (const auto& [name, type] : whole_page().types) {
    served.insert(name);
  }
  std::istringstream lines(
      stagecraft::tests::read_text_file(STAGECRAFT_SOURCE_DIR "/docs/watch.md"));
  std::set<std::string> listed;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("| `stagecraft_")) {
      listed.merge(metric_names(line));
    }
  }
  CHECK(listed == served);
}

TEST_CASE("labels are UTF-8, whatever names are", "[actors][watch]") {
  WatchedRun run = two_ranks();
  run.model = "a\xff\n";
  CHECK(scrape(metrics_text(WatchBoard(run).state()))
            .values.contains("stagecraft_run_info{model=\"a\xef\xbf\xbd\\n\",schedule=\"1f1b\"}"));
}

TEST_CASE("a step is late by its clock, and what is said of it ends with it", "[actors][watch]") {
  const auto clock = std::make_shared<ManualClock>();
  const ClockOfThread manual(clock);
  WatchBoard board(two_ranks());
  board.begin_step();
  clock->advance(std::chrono::milliseconds(900));
  CHECK_FALSE(board.is_late());
  clock->advance(std::chrono::milliseconds(200));
  CHECK(board.is_late());
  board.set_waits("rank 0 waits");
  CHECK(board.state().waits == "rank 0 waits");
  CHECK(board.state().running_seconds == 1.1);
  board.leave_step();  // as a batch of an update, or as a step that failed
  CHECK(board.state().waits.empty());
  CHECK_FALSE(board.is_late());
  CHECK(board.state().running_seconds == 0.0);

  board.end_step({.step = 1, .seconds = 2.0}, 1);
  board.begin_step();
  clock->advance(std::chrono::seconds(5));
  CHECK_FALSE(board.is_late());
  clock->advance(std::chrono::seconds(2));
  CHECK(board.is_late());
  board.set_waits("rank 1 waits");
  board.begin_step();
  CHECK(board.state().waits.empty());
  board.set_waits("rank 1 waits");
  board.end("it failed");
  CHECK(board.state().waits.empty());
}

TEST_CASE("the end waits for those who looked shortly before", "[actors][watch]") {
  const auto clock = std::make_shared<ManualClock>();
  const ClockOfThread manual(clock);
  WatchBoard board(two_ranks());
  board.end("done");
  board.wait_for_followers(kLong);  // returns at once: nobody has looked
  WatchBoard other(two_ranks());
  (void)other.look();
  other.end("done");
  std::thread watcher([&] {
    while (clock->waits() == 0) {
      std::this_thread::yield();
    }
    (void)other.look();
  });
  other.wait_for_followers(kLong);
  watcher.join();
}

TEST_CASE("wishes wait for the run, and one for a checkpoint is taken once", "[actors][watch]") {
  WatchBoard board(two_ranks());
  CHECK_FALSE(board.take_checkpoint_wish());
  CHECK(board.wish([](WatchWishes& w) { w.checkpoint = true; }));
  CHECK(board.take_checkpoint_wish());
  CHECK_FALSE(board.take_checkpoint_wish());
  CHECK_FALSE(board.wait_paused(kLong));  // returns at once: nobody wishes a pause
  CHECK(board.wish([](WatchWishes& w) { w.pause = true; }));
  CHECK(board.wait_paused(kAtOnce));
  CHECK(board.look().phase == WatchPhase::Paused);
  std::thread other([&] { board.wish([](WatchWishes& w) { w.pause = false; }); });
  CHECK_FALSE(board.wait_paused(kLong));
  other.join();
  CHECK(board.look().phase == WatchPhase::Running);
  CHECK(board.wish([](WatchWishes& w) { w.pause = w.stop = true; }));
  CHECK_FALSE(board.wait_paused(kLong));  // an end comes before a pause
  board.end("all is done");
  board.end("again");
  CHECK(board.look().end == "all is done");
  CHECK_FALSE(board.wish([](WatchWishes& w) { w.stop = true; }));
}

TEST_CASE("who waits for changes learns of them, and of the end without a rest",
          "[actors][watch]") {
  WatchBoard board(two_ranks());
  std::uint64_t seen = 0;
  CHECK(board.wait_for_change(seen, kAtOnce, kLong));  // all is new at first
  CHECK_FALSE(board.wait_for_change(seen, kAtOnce, kAtOnce));
  board.add_message("news");
  CHECK(board.wait_for_change(seen, kAtOnce, kLong));
  std::thread run([&] { board.end("done"); });
  CHECK(board.wait_for_change(seen, kLong, kLong));
  run.join();
}

TEST_CASE("a board knows whether somebody looks", "[actors][watch]") {
  WatchBoard board(two_ranks());
  CHECK_FALSE(board.is_looked_at());
  {
    const WatchBoard::Follower follower(board);
    CHECK(board.is_looked_at());
    board.wait_for_followers(kAtOnce);
  }
  board.wait_for_followers(kLong);
  CHECK_FALSE(board.is_looked_at());
  (void)board.state();
  CHECK_FALSE(board.is_looked_at());
  (void)board.look();
  CHECK(board.is_looked_at());
}

}  // namespace stagecraft
