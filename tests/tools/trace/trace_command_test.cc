/// Tests `train --trace` and `trace compare` as their user meets them: a file that viewers open,
/// numbers that add up, and the same answer from the file as from the run.

#include <csignal>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/train/run/train_run.h"
#include "stagecraft/tools/trace/trace_file.h"

namespace stagecraft::tests {
namespace {

using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
using Json = nlohmann::json;

using Words = std::vector<std::string>;

// Stage 1 takes two microbatches of stage 0 as one.
const Words kSized{"dag-kfkb", "--graph", "0-1", "--microbatches", "4", "--set", "sizes=1,2"};

/// Holds a run of three steps on a schedule that the command made, and its trace.
struct TracedRun {
  TemporaryFolder folder;
  std::string plan, trace;
  TrainOutput output;

  explicit TracedRun(const std::vector<std::string>& make, const std::string& workers = "threads") {
    plan = folder.path() + "/plan";
    trace = folder.path() + "/trace.json";
    std::vector<std::string> words{STAGECRAFT_COMMAND, "schedule", "make"};
    words.insert(words.end(), make.begin(), make.end());
    words.insert(words.end(), {"-o", plan});
    const CommandResult made = run_command(words);
    CAPTURE(made.err);
    REQUIRE(made.exit_code == 0);
    const Schedule schedule = Schedule::parse(read_text_file(plan));
    output = train_json({"--schedule",
                         plan,
                         "--microbatches",
                         std::to_string(schedule.microbatches()),
                         "--layers",
                         std::to_string(Layout::of(schedule).model_stages()),
                         "--workers",
                         workers,
                         "--trace",
                         trace});
  }

  [[nodiscard]] Json events() const { return Json::parse(read_text_file(trace)).at("traceEvents"); }
};

CommandResult compare(const std::string& plan,
                      const std::string& trace,
                      const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{STAGECRAFT_COMMAND, "trace", "compare", plan, trace};
  words.insert(words.end(), more.begin(), more.end());
  return run_command(words);
}

double number(const Json& object, const char* key) {
  return object.at(key).get<double>();
}

/// Checks for every rank, planned and measured: busy and idle add up to the makespan, causes add up
/// to idle.
void check_sums(const Json& report) {
  for (const Json& rank : report.at("ranks")) {
    CAPTURE(rank.dump());
    for (const char* which : {"planned", "measured"}) {
      const Json& bill = rank.at(which);
      const double makespan = number(report,
                                     which == std::string("planned") ? "planned_makespan_seconds"
                                                                     : "measured_makespan_seconds");
      CHECK(number(bill, "busy_seconds") + number(bill, "idle_seconds") == Approx(makespan));
      double causes = 0;
      for (const char* cause : {"warm_up_seconds",
                                "dependency_seconds",
                                "communication_seconds",
                                "overhead_seconds",
                                "drain_seconds"}) {
        CHECK(number(bill, cause) >= 0);
        causes += number(bill, cause);
      }
      CHECK(causes == Approx(number(bill, "idle_seconds")).margin(1e-9));
      CHECK(number(bill, "busy_seconds") > 0);
    }
    for (const char* part : {"start_seconds", "vote_seconds", "update_seconds", "other_seconds"}) {
      CHECK(number(rank.at("outside"), part) >= -1e-9);
    }
  }
}

}  // namespace

TEST_CASE("a trace has every task of every step, on tracks that never run backwards",
          "[tools][trace]") {
  const TracedRun run({"1f1b", "--devices", "2", "--microbatches", "4"});
  std::map<std::string, int> tasks;
  std::map<std::tuple<std::string, int, std::string>, double>
      last;                                    // by kind, rank, thread or name
  std::map<std::pair<int, int>, double> open;  // the end of the last slice, by rank and thread
  for (const Json& event : run.events()) {
    const std::string kind = event.at("ph");
    if (kind == "M") {
      continue;
    }
    CAPTURE(event.dump());
    const int rank = event.at("pid");
    const std::string track = kind == "C" ? event.at("name").get<std::string>()
                                          : std::to_string(event.at("tid").get<int>());
    const auto [seen, first] = last.try_emplace({kind, rank, track}, number(event, "ts"));
    CHECK((first || seen->second <= number(event, "ts")));
    seen->second = number(event, "ts");
    if (kind == "X") {
      CHECK(number(event, "dur") >= 0);
      double& until = open[{rank, event.at("tid").get<int>()}];
      CHECK(until <= number(event, "ts") + 0.0005);  // slices follow each other, so they nest
      until = number(event, "ts") + number(event, "dur");
      if (event.at("tid") == 0 && event.at("args").contains("kind")) {
        ++tasks[event.at("name")];
      }
    } else if (kind == "C") {
      CHECK(event.at("args").begin().value().get<double>() >= 0);
    }
  }
  for (const char* task : {"0F0", "0F3", "0B0", "0B3", "1F0", "1F3", "1B0", "1B3", "update 0"}) {
    CAPTURE(task);
    CHECK(tasks[task] == 3);
  }
}

TEST_CASE("a trace has exchanges of one microbatch above the tasks of another",
          "[tools][trace][experts]") {
  const TemporaryFolder folder;
  const std::string trace = folder.path() + "/trace.json";
  (void)train_json({"--model",
                    "moe",
                    "--schedule",
                    "dualpipev",
                    "--ranks",
                    "4",
                    "--ep",
                    "2",
                    "--layers",
                    "8",
                    "--trace",
                    trace});
  using Spot = std::pair<std::string, int>;  // kind of task, microbatch
  const auto spot_of = [](const Json& slice) {
    return Spot(slice.at("args").at("kind").get<std::string>(),
                slice.at("args").at("microbatch").get<int>());
  };
  std::map<int, std::vector<Json>> tasks;  // by rank
  const Json events = Json::parse(read_text_file(trace)).at("traceEvents");
  for (const Json& event : events) {
    if (event.at("ph") == "X" && event.value("cat", "").find("ward") != std::string::npos) {
      tasks[event.at("pid").get<int>()].push_back(event);
    }
  }
  REQUIRE(tasks.size() == 4);
  std::map<int, int> spans, covering;  // by rank
  std::optional<Spot> of_exchange;
  double begin = 0;
  for (const Json& event : events) {
    const int rank = event.value("pid", 0);
    if (event.at("ph") == "X" && event.value("cat", "") == "end of an exchange") {
      of_exchange = spot_of(event);
    } else if (event.at("ph") == "b" && event.at("cat") == "exchange") {
      CHECK_THAT(event.at("name").get<std::string>(), ContainsSubstring("exchange of group "));
      begin = number(event, "ts");
    } else if (event.at("ph") == "e" && event.at("cat") == "exchange") {
      REQUIRE(of_exchange);
      ++spans[rank];
      int others = 0;
      for (const Json& task : tasks[rank]) {
        // The clock has nanoseconds, and texts thousandths of a microsecond.
        if (number(task, "ts") >= begin - 0.001 &&
            number(task, "ts") + number(task, "dur") <= number(event, "ts") + 0.001) {
          CAPTURE(rank, task.dump(), of_exchange->first, of_exchange->second);
          CHECK(spot_of(task) != *of_exchange);
          ++others;
        }
      }
      covering[rank] += others > 0 ? 1 : 0;
    }
  }
  for (int rank = 0; rank < 4; ++rank) {
    CAPTURE(rank);
    CHECK(spans[rank] > 0);
    CHECK(covering[rank] > 0);
  }
}

TEST_CASE("no rank's clock has it at work on a step before another has ended the one before",
          "[tools][trace][processes]") {
  const std::string workers = GENERATE("threads", "processes");
  CAPTURE(workers);
  const TracedRun run({"1f1b", "--devices", "2", "--microbatches", "4"}, workers);
  std::map<int, double> begin, end;  // by step, of all ranks
  for (const Json& event : run.events()) {
    if (event.at("ph") == "X") {
      const int step = event.at("args").at("step");
      const double from = number(event, "ts");
      begin[step] = std::min(begin.try_emplace(step, from).first->second, from);
      end[step] = std::max(end[step], from + number(event, "dur"));
    }
  }
  REQUIRE(begin.size() == 3);
  for (auto next = std::next(begin.begin()); next != begin.end(); ++next) {
    CAPTURE(next->first);
    CHECK(end[next->first - 1] <= next->second + 0.0005);
  }
}

TEST_CASE("every flow of a trace leads from a send into its receive, also between processes",
          "[tools][trace][processes]") {
  const std::string workers = GENERATE("threads", "processes");
  const bool sized = GENERATE(false, true);
  CAPTURE(workers, sized);
  const TracedRun run(sized ? kSized : Words{"1f1b", "--devices", "2", "--microbatches", "4"},
                      workers);
  std::map<std::int64_t, Json> sent, received;
  std::map<std::tuple<int, int>, std::vector<Json>> slices;
  for (const Json& event : run.events()) {
    if (event.at("ph") == "s") {
      CHECK(sent.emplace(event.at("id"), event).second);
    } else if (event.at("ph") == "f") {
      CHECK(received.emplace(event.at("id"), event).second);
    } else if (event.at("ph") == "X") {
      slices[{event.at("pid"), event.at("tid")}].push_back(event);
    }
  }
  // If two slices touch at the flow's time, the flow is bound to the later one.
  const auto slice_at = [&](const Json& flow) {
    Json found;
    for (const Json& slice : slices[{flow.at("pid"), flow.at("tid")}]) {
      if (number(slice, "ts") <= number(flow, "ts") &&
          number(flow, "ts") <= number(slice, "ts") + number(slice, "dur")) {
        found = slice;
      }
    }
    return found;
  };
  CHECK(sent.size() == 3 * 4 * 2);  // steps, microbatches of the smaller, there and back
  REQUIRE(received.size() == sent.size());
  for (const auto& [id, from] : sent) {
    REQUIRE(received.contains(id));
    const Json& to = received.at(id);
    CAPTURE(from.dump(), to.dump());
    CHECK(from.at("pid") != to.at("pid"));
    CHECK(number(from, "ts") <= number(to, "ts"));
    const Json send = slice_at(from), receive = slice_at(to);
    REQUIRE(send.is_object());
    REQUIRE(receive.is_object());
    CHECK(send.at("args").at("edge") == receive.at("args").at("edge"));
    CHECK(send.at("args").at("part") == receive.at("args").at("part"));
    CHECK((sized || send.at("args").at("microbatch") == receive.at("args").at("microbatch")));
    CHECK(send.at("args").at("bytes") == receive.at("args").at("bytes"));
    CHECK(number(send, "ts") <= number(receive, "ts") + number(receive, "dur"));
  }
}

TEST_CASE("a trace knows who made each part of a microbatch of another size",
          "[tools][trace][sizes]") {
  const TracedRun run(kSized);
  const Layout layout = Layout::of(Schedule::parse(read_text_file(run.plan)));
  std::ifstream file(run.trace);
  int forwards = 0, backwards = 0;
  (void)tools::read_trace(
      file, run.trace, [&](const tools::TraceHeader&, const tools::TraceStep& step) {
        const MeasuredStep measured = tools::measured_step(step, layout);
        for (int row = 0; row < 2; ++row) {
          for (const MeasuredTask& task : measured.rows[static_cast<std::size_t>(row)].tasks) {
            const bool forward = task.task.kind == CellKind::Forward;
            int from_other = 0;
            for (const MeasuredInput& input : task.inputs) {
              if (input.from_row) {
                ++from_other;
                CHECK(*input.from_row == 1 - row);
                CHECK(input.made <= input.arrived);
              }
            }
            CAPTURE(to_string(task.task));
            // Two forwards of stage 0 feed one of stage 1, whose backward feeds two.
            const int expected = row == 0 ? (forward ? 0 : 1) : (forward ? 2 : 0);
            CHECK(from_other == expected);
            ++(forward ? forwards : backwards);
          }
        }
      });
  CHECK(forwards == 3 * (4 + 2));
  CHECK(backwards == forwards);
}

TEST_CASE("planned against measured adds up, and the file says what the run said",
          "[tools][trace]") {
  // The schedules have whole and split backwards, several stages per rank, overlap groups, two
  // replicas, and microbatches of two sizes.
  const Words make =
      GENERATE(Words{"1f1b", "--devices", "2", "--microbatches", "4"},
               Words{"zb-h1", "--devices", "2", "--microbatches", "4"},
               Words{"interleaved", "--devices", "2", "--microbatches", "4", "--chunks", "2"},
               Words{"dualpipe", "--devices", "2", "--microbatches", "8"},
               Words{"chimera", "--devices", "2", "--microbatches", "4"},
               kSized);
  CAPTURE(make.front());
  const TracedRun run(make);
  const Json& said = run.output.timeline;
  REQUIRE(said.is_object());
  CHECK(said.at("steps") == 2);  // the first step is left out
  check_sums(said);
  const CommandResult result = compare(run.plan, run.trace, {"--json", "--limit", "3"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const Json read = Json::parse(result.out);
  check_sums(read);
  CHECK(read.at("steps") == said.at("steps"));
  CHECK(number(read, "measured_makespan_seconds") ==
        Approx(number(said, "measured_makespan_seconds")));
  CHECK(number(read, "planned_makespan_seconds") ==
        Approx(number(said, "planned_makespan_seconds")));
  for (std::size_t rank = 0; rank < 2; ++rank) {
    for (const char* cause : {"busy_seconds",
                              "warm_up_seconds",
                              "dependency_seconds",
                              "communication_seconds",
                              "overhead_seconds",
                              "drain_seconds"}) {
      CAPTURE(rank, cause);
      CHECK(number(read.at("ranks")[rank].at("measured"), cause) ==
            Approx(number(said.at("ranks")[rank].at("measured"), cause)).margin(1e-8));
    }
  }
  REQUIRE(read.at("cells").size() == 3);
  CHECK(std::abs(number(read.at("cells")[0], "late_seconds")) >=
        std::abs(number(read.at("cells")[1], "late_seconds")));
  CHECK(std::abs(number(read.at("cells")[1], "late_seconds")) >=
        std::abs(number(read.at("cells")[2], "late_seconds")));
}

TEST_CASE("the report is readable by people, too", "[tools][trace]") {
  const TemporaryFolder folder;
  const CommandResult result = run_train({"--schedule", "1f1b", "--ranks", "2", "--report"});
  CAPTURE(result.out);
  for (const char* text : {"planned against measured, mean of 2 steps",
                           "makespan: planned",
                           "busy",
                           "warm-up",
                           "dependency",
                           "transfer",
                           "overhead",
                           "drain",
                           "a step takes"}) {
    CHECK_THAT(result.out, ContainsSubstring(text));
  }
}

TEST_CASE("trace compare refuses another schedule's trace, a cut one, and none", "[tools][trace]") {
  const TracedRun run({"1f1b", "--devices", "2", "--microbatches", "4"});
  const CommandResult good = compare(run.plan, run.trace, {"--limit", "2"});
  CHECK(good.exit_code == 0);
  CHECK_THAT(good.out, ContainsSubstring("14 more cells deviate less"));

  const TracedRun other({"gpipe", "--devices", "2", "--microbatches", "4"});
  const CommandResult wrong = compare(other.plan, run.trace);
  CHECK(wrong.exit_code == 2);
  CHECK_THAT(wrong.err,
             ContainsSubstring("row 0: the schedule has 0F2 where the step ran 0B0 (step 1)"));
  const std::string whole = read_text_file(run.trace);
  const CommandResult cut =
      compare(run.plan, run.folder.write("cut.json", whole.substr(0, whole.size() / 2)));
  CHECK(cut.exit_code == 2);
  CHECK_THAT(cut.err, ContainsSubstring("cut off after"));
  const CommandResult none = compare(run.plan, run.folder.path() + "/none.json");
  CHECK(none.exit_code == 2);
  CHECK_THAT(none.err, ContainsSubstring("none.json"));
  const CommandResult costs = compare(
      run.plan,
      run.trace,
      {"--json",
       "--costs",
       run.folder.write("costs.json", R"({"version":1,"stages":{"usual":{"F":1,"B":3}}})")});
  CAPTURE(costs.err);
  CHECK(costs.exit_code == 0);
  CHECK(number(Json::parse(costs.out), "planned_makespan_seconds") == 5 * 4);  // (P - 1 + M)(F + B)
  const CommandResult swapped = compare(run.trace, run.plan);
  CHECK(swapped.exit_code == 2);
  CHECK_THAT(swapped.err,
             ContainsSubstring("found the trace '" + run.trace + "'; exchange the two files"));
  const CommandResult twice = compare(run.trace, run.trace);
  CHECK(twice.exit_code == 2);
  CHECK_THAT(twice.err, ContainsSubstring("name the schedule of that run"));
  const CommandResult words = run_command({STAGECRAFT_COMMAND, "trace", "comprae"});
  CHECK(words.exit_code == 2);
  CHECK_THAT(words.err, ContainsSubstring("compare"));
}

TEST_CASE("trace show draws a run below its plan", "[tools][trace]") {
  const Words make = GENERATE(Words{"1f1b", "--devices", "2", "--microbatches", "4"},
                              Words{"zb-v", "--devices", "2", "--microbatches", "4"},
                              Words{"chimera", "--devices", "2", "--microbatches", "4"},
                              kSized);
  CAPTURE(make.front());
  const TracedRun run(make);
  const auto shown = [&](const std::string& trace, const Words& more) {
    Words words{STAGECRAFT_COMMAND, "trace", "show", trace};
    words.insert(words.end(), more.begin(), more.end());
    return run_command(words);
  };
  const CommandResult svg = shown(run.trace, {"--svg", "-", "--width", "16cm"});
  CAPTURE(svg.err);
  REQUIRE(svg.exit_code == 0);
  CHECK_THAT(svg.err, !ContainsSubstring("stands for"));
  CHECK_THAT(svg.out,
             ContainsSubstring(">planned</text>") &&
                 ContainsSubstring(">measured, mean of 2 steps</text>") &&
                 ContainsSubstring(">ms</text>") && ContainsSubstring("0F0 on row 0 of planned") &&
                 ContainsSubstring("0F0 on row 0 of measured") &&
                 ContainsSubstring("class=\"title\""));
  CHECK_THAT(shown(run.trace, {"--tikz", "-", "--title", ""}).out, ContainsSubstring("{planned}"));
  CHECK_THAT(shown(run.trace, {}).err, ContainsSubstring("add --svg FILE"));
  std::string old = read_text_file(run.trace);
  const std::size_t key = old.find("\"schedule\":");
  REQUIRE(key != std::string::npos);
  const CommandResult without =
      shown(run.folder.write("old.json", old.replace(key, 10, "\"unknown\"")), {"--svg", "-"});
  CHECK(without.exit_code == 2);
  CHECK_THAT(without.err, ContainsSubstring("does not contain its schedule"));
}

TEST_CASE("trace show says which ranks it does not draw", "[tools][trace]") {
  const TemporaryFolder folder;
  const std::string trace = folder.path() + "/trace.json";
  (void)train_json({"--ranks", "2", "--dp", "2", "--microbatches", "4", "--trace", trace});
  const CommandResult shown =
      run_command({STAGECRAFT_COMMAND, "trace", "show", trace, "--svg", "-"});
  CHECK(shown.exit_code == 0);
  CHECK(
      shown.err ==
      "note: d0 stands for ranks 0, 1, which run the same tasks on their own samples; the picture "
      "shows rank 0\n");
}

TEST_CASE("a trace whose steps do not follow the schedule in it is damaged", "[tools][trace]") {
  const TracedRun run({"1f1b", "--devices", "2", "--microbatches", "4"});
  const TracedRun other({"gpipe", "--devices", "2", "--microbatches", "4"});
  const std::string key = "\"schedule\":";
  const auto after_key = [&](const std::string& text) {
    const std::size_t at = text.find(key);
    REQUIRE(at != std::string::npos);
    return at + key.size();
  };
  const auto value_of = [&](const std::string& text) {
    const std::size_t begin = text.find('"', after_key(text));
    return text.substr(begin, text.find('"', begin + 1) - begin + 1);
  };
  std::string trace = read_text_file(run.trace);
  const std::string own = value_of(trace);
  trace.replace(trace.find(own), own.size(), value_of(read_text_file(other.trace)));
  const std::string damaged = run.folder.write("damaged.json", trace);
  const CommandResult shown =
      run_command({STAGECRAFT_COMMAND, "trace", "show", damaged, "--svg", "-"});
  CHECK(shown.exit_code == 2);
  CHECK(shown.out.empty());
  CHECK_THAT(shown.err,
             ContainsSubstring("'" + damaged +
                               "' is damaged: its step 1 does not follow the "
                               "schedule in it: row 0: the schedule has 0F2") &&
                 !ContainsSubstring("name the schedule"));
}

TEST_CASE("a run that is interrupted leaves a complete trace", "[tools][trace]") {
  const TemporaryFolder folder;
  const std::string trace = folder.path() + "/trace.json";
  RunningCommand run(small_train({"--steps", "100000", "--ranks", "2", "--trace", trace}));
  REQUIRE(run.wait_for_output("step 3/"));
  run.send_signal(SIGINT);
  CHECK(run.wait().exit_code == 130);
  std::set<int> steps;
  const Json whole = Json::parse(read_text_file(trace));
  for (const Json& event : whole.at("traceEvents")) {
    if (event.at("ph") == "X") {
      steps.insert(event.at("args").at("step").get<int>());
    }
  }
  CHECK(steps.size() >= 3);
  CHECK(*steps.rbegin() == static_cast<int>(steps.size()));
}

}  // namespace stagecraft::tests
