/// Tests `train --costs` and `--costs-out`: the measurements of a run predict the next run with the
/// numbers of the simulator, and files that cannot predict it are refused before training.

#include <csignal>
#include <fstream>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/own_cache.h"
#include "stagecraft/tests/tools/train/run/train_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

Json parsed(const CommandResult& result) {
  CAPTURE(result.err, result.out);
  REQUIRE(result.exit_code == 0);
  return Json::parse(result.out);
}

double makespan(const Json& object, const char* key) {
  return object.at(key).get<double>();
}

Words command(const Words& words) {
  Words all{STAGECRAFT_COMMAND};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

/// Returns the makespan that `schedule simulate` prints for the schedule.
double simulated(const std::string& plan, const std::string& costs) {
  return makespan(
      parsed(run_command(command({"schedule", "simulate", plan, "--costs", costs, "--json"}))),
      "makespan");
}

/// Holds a run of two ranks and its files; the tests of refusals change the costs file.
struct MeasuredRun {
  TemporaryFolder folder;
  std::string costs = at("costs.json");

  explicit MeasuredRun(const Words& more = {"--ranks", "2"}) {
    Words words = more;
    words.insert(words.end(), {"--costs-out", costs});
    (void)train_json(words);
  }

  [[nodiscard]] std::string at(const std::string& name) const { return folder.path() + "/" + name; }
  [[nodiscard]] Json json() const { return Json::parse(read_text_file(costs)); }
};

/// Returns the train command's refusal, which comes before any step.
std::string refusal_of(const Words& more) {
  const CommandResult result = run_train(more);
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  return result.err;
}

Json dry_run(const Words& more) {
  Words words = more;
  words.insert(words.end(), {"--dry-run", "--json"});
  return parsed(run_train(words));
}

/// Returns the ```sh lines of a section of docs/train-command.md, each a command.
Words commands_of(const std::string& heading) {
  std::ifstream page(STAGECRAFT_SOURCE_DIR "/docs/train-command.md");
  Words commands;
  bool here = false, inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("#")) {
      here = line == heading;
    } else if (line.starts_with("```")) {
      inside = line == "```sh";
    } else if (here && inside) {
      commands.push_back(line);
    }
  }
  return commands;
}

}  // namespace

TEST_CASE("the commands of docs/train-command.md go from a run to its successor's prediction",
          "[tools][train][docs]") {
  const OwnCache cache;
  const TemporaryFolder folder;
  const Words commands = commands_of("## Predicting a run");
  REQUIRE(commands.size() == 8);
  for (const std::string& line : commands) {
    CAPTURE(line);
    const CommandResult result = run_command(
        {"bash", "-c", "PATH=" STAGECRAFT_BUILD_DIR "/bin:$PATH; " + line}, folder.path());
    CAPTURE(result.out, result.err);
    REQUIRE(result.exit_code == 0);
    if (line.find("--schedule plan.txt") != std::string::npos ||
        line.find("trace compare") != std::string::npos) {
      CHECK_THAT(result.out, ContainsSubstring(" with 'costs.json'"));
    }
  }
  const std::string plan = folder.path() + "/plan.txt", costs = folder.path() + "/costs.json";
  const Json compared = parsed(
      run_command(command({"trace", "compare", plan, folder.path() + "/trace.json", "--json"})));
  CHECK(compared.at("planned_by") == "costs");
  CHECK(compared.at("costs") == "'costs.json'");
  CHECK(makespan(compared, "planned_makespan_seconds") == simulated(plan, costs));
}

TEST_CASE("planned is what simulate says of the same schedule and costs", "[tools][train][costs]") {
  const MeasuredRun first;
  const Json costs = first.json();
  CHECK(costs.at("operators").size() > 10);
  CHECK(costs.at("stages").at("each").size() == 2);
  const std::string plan = first.at("plan");
  // Some halves were never run by the first run, and this run does some backwards whole.
  const std::string name = GENERATE("zb-auto", "gpipe", "zb-h2");
  CAPTURE(name);
  Words make{"schedule", "make", name, "--devices", "2", "--microbatches", "4", "-o", plan};
  if (name == "zb-auto") {
    make.insert(make.end(), {"--costs", first.costs});
  }
  REQUIRE(run_command(command(make)).exit_code == 0);
  const std::string trace = first.at("trace.json"), second = first.at("second.json");
  const Json said =
      train_json(
          {"--schedule", plan, "--costs", first.costs, "--trace", trace, "--costs-out", second})
          .timeline;
  const double predicted = simulated(plan, first.costs);
  CHECK(predicted > 0);
  CHECK(makespan(said, "planned_makespan_seconds") == predicted);
  CHECK(said.at("planned_by") == "costs");
  CHECK(said.at("costs") == "'" + first.costs + "'");
  // The builder's name makes the same schedule from the same costs.
  const Json foreseen = dry_run({"--schedule", name, "--ranks", "2", "--costs", first.costs});
  CHECK(makespan(foreseen.at("planned"), "makespan_seconds") == predicted);
  // The trace holds the costs that predicted its run; costs that are given replace them.
  const Json compared = parsed(run_command(command({"trace", "compare", plan, trace, "--json"})));
  CHECK(makespan(compared, "planned_makespan_seconds") == predicted);
  const Json other =
      parsed(run_command(command({"trace", "compare", plan, trace, "--json", "--costs", second})));
  CHECK(makespan(other, "planned_makespan_seconds") == simulated(plan, second));
}

TEST_CASE("copies of stages have costs of their own", "[tools][train][costs]") {
  const MeasuredRun first({"--schedule", "chimera", "--ranks", "2"});
  const std::string plan = first.at("plan");
  REQUIRE(
      run_command(
          command(
              {"schedule", "make", "chimera", "--devices", "2", "--microbatches", "4", "-o", plan}))
          .exit_code == 0);
  CHECK(first.json().at("stages").at("each").size() == 4);
  CHECK(makespan(train_json({"--schedule", plan, "--costs", first.costs}).timeline,
                 "planned_makespan_seconds") == simulated(plan, first.costs));
}

TEST_CASE("a run that a signal ends, or that nobody hears, leaves its costs",
          "[tools][train][costs]") {
  const TemporaryFolder folder;
  const std::string costs = folder.path() + "/costs.json";
  RunningCommand run(small_train({"--steps", "100000", "--ranks", "2", "--costs-out", costs}));
  REQUIRE(run.wait_for_output("step 3/"));
  run.send_signal(SIGINT);
  CHECK(run.wait().exit_code == 130);
  CHECK(Json::parse(read_text_file(costs)).at("stages").at("each").size() == 2);

  std::string line;
  for (const std::string& word :
       small_train({"--ranks", "3", "--layers", "3", "--costs-out", costs})) {
    line += word + " ";
  }
  const CommandResult unheard = run_command({"bash", "-c", line + "> /dev/full"});
  CHECK(unheard.exit_code == 2);
  CHECK_THAT(unheard.err, ContainsSubstring("the run continues for '" + costs + "'"));
  CHECK(Json::parse(read_text_file(costs)).at("stages").at("each").size() == 3);
}

TEST_CASE("without --costs the plan is fitted, and a trace has none", "[tools][train][costs]") {
  const TemporaryFolder folder;
  const std::string trace = folder.path() + "/trace.json";
  const Json said = train_json({"--ranks", "2", "--trace", trace}).timeline;
  CHECK(said.at("planned_by") == "this run");
  CHECK_FALSE(said.contains("costs"));
  CHECK_FALSE(Json::parse(read_text_file(trace)).at("otherData").contains("planned_with"));
  CHECK_FALSE(dry_run({"--ranks", "2"}).contains("planned"));
}

TEST_CASE("a profile predicts a run, whose stages a dry run writes", "[tools][train][costs]") {
  const OwnCache cache;
  const TemporaryFolder folder;
  const std::string profile = folder.path() + "/profile.json",
                    stages = folder.path() + "/stages.json", plan = folder.path() + "/plan";
  REQUIRE(run_command(command({"profile",
                               "--layers",
                               "4",
                               "--dim",
                               "32",
                               "--heads",
                               "2",
                               "--ffn",
                               "48",
                               "--seq",
                               "16",
                               "--microbatch-sizes",
                               "1,2",
                               "-o",
                               profile}))
              .exit_code == 0);
  const Json foreseen =
      dry_run({"--ranks", "2", "--schedule", "zb-auto", "--costs", profile, "--costs-out", stages});
  REQUIRE(run_command(command({"schedule",
                               "make",
                               "zb-auto",
                               "--devices",
                               "2",
                               "--microbatches",
                               "4",
                               "--costs",
                               stages,
                               "-o",
                               plan}))
              .exit_code == 0);
  const double predicted = simulated(plan, stages);
  CHECK(makespan(foreseen.at("planned"), "makespan_seconds") == predicted);
  const Json said =
      train_json({"--ranks", "2", "--schedule", "zb-auto", "--costs", profile}).timeline;
  CHECK(makespan(said, "planned_makespan_seconds") == predicted);
  // The simulator must not take operators as if each stage had the default.
  const CommandResult alone =
      run_command(command({"schedule", "simulate", plan, "--costs", profile}));
  CHECK(alone.exit_code == 2);
  CHECK_THAT(alone.err,
             ContainsSubstring("operators but not of stages") && ContainsSubstring("--costs-out"));
}

TEST_CASE("costs that cannot be read are refused before a step", "[tools][train][costs]") {
  const TemporaryFolder folder;
  CHECK_THAT(
      refusal_of({"--ranks", "2", "--costs", folder.path() + "/none.json"}),
      ContainsSubstring("--costs expects a readable file") && ContainsSubstring("none.json"));
  CHECK_THAT(refusal_of({"--ranks", "2", "--costs", folder.write("a.json", "0F0 1F0")}),
             ContainsSubstring("a.json': line 1, column"));
  CHECK_THAT(refusal_of({"--ranks",
                         "2",
                         "--costs",
                         folder.write("b.json", R"({"version":1,"stages":{"usual":{"F":-1}}})")}),
             ContainsSubstring("field \"F\" needs a number of at least 0"));
  CHECK_THAT(refusal_of({"--ranks", "2", "--costs", folder.write("c.json", R"({"version":1})")}),
             ContainsSubstring("c.json' cannot predict this run: it lacks the times of stages") &&
                 ContainsSubstring("--costs-out") && ContainsSubstring("stagecraft profile"));
  CHECK_THAT(
      refusal_of({"--ranks",
                  "2",
                  "--costs",
                  folder.write("d.json", R"({"version":1,"stages":{"usual":{"F":1e308}}})")}),
      ContainsSubstring("more than any number holds"));
  CHECK_THAT(refusal_of({"--plan", "auto", "--costs", folder.write("e.json", "{}")}),
             ContainsSubstring("--costs expects no --plan"));
}

TEST_CASE("costs of another run are refused before a step", "[tools][train][costs]") {
  const MeasuredRun run;
  const auto costs = [&](Words more) {
    more.insert(more.end(), {"--costs", run.costs});
    return refusal_of(more);
  };
  CHECK_THAT(costs({"--ranks", "4"}),
             ContainsSubstring("it has the times of 2 stages, but the schedule has 4 stages"));
  CHECK_THAT(costs({"--ranks", "2", "--layers", "3"}),
             ContainsSubstring("to another model: it has"));
  CHECK_THAT(costs({"--ranks", "2", "--dim", "64"}), ContainsSubstring("to another model: its"));
  CHECK_THAT(costs({"--ranks", "2", "--microbatch-size", "4"}),
             ContainsSubstring("microbatches of 2 samples, this run has 4"));
  CHECK_THAT(costs({"--ranks", "2", "--costs-out", run.costs}),
             ContainsSubstring("--costs-out and --costs name one file"));
  Json one_way = run.json();
  one_way.at("links").at("each").erase(1);
  CHECK_THAT(refusal_of({"--ranks", "2", "--costs", run.folder.write("a.json", one_way.dump())}),
             ContainsSubstring("the link from row 1 to row 0"));
}

TEST_CASE("costs of a run need as many ranks", "[tools][train][costs]") {
  const MeasuredRun run({"--ranks", "4"});
  CHECK_THAT(refusal_of({"--schedule", "interleaved", "--ranks", "2", "--costs", run.costs}),
             ContainsSubstring("a link of row 2, but the schedule has 2 rows"));
}

TEST_CASE("costs that a user states predict a run, too", "[tools][train][costs]") {
  const TemporaryFolder folder;
  const std::string costs =
      folder.write("costs.json", R"({"version":1,"stages":{"usual":{"F":0.1,"B":0.3}}})");
  const TrainOutput run = train_json({"--ranks", "2", "--costs", costs});
  CHECK(makespan(run.timeline, "planned_makespan_seconds") == Catch::Approx(5 * 0.4));
  const CommandResult told = run_train({"--ranks", "2", "--costs", costs, "--dry-run"});
  CHECK(told.exit_code == 0);
  CHECK_THAT(told.out, ContainsSubstring("costs.json': makespan 2000.00 ms, bubble 20.0 %"));
}

}  // namespace stagecraft::tests
