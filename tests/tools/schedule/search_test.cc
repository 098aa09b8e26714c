/// Tests `stagecraft schedule search`: the best schedule within a cap, or the best found and the
/// gap.

#include <nlohmann/json.hpp>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
using Json = nlohmann::json;

Json searched(const std::string& line) {
  const CommandResult result = run_schedule_line("search " + line + " --json");
  CAPTURE(line, result.err);
  REQUIRE(result.exit_code == 0);
  return Json::parse(result.out);
}

}  // namespace

TEST_CASE("search prints a schedule that check and simulate agree with", "[tools][schedule]") {
  const std::string words = "search --devices 3 --microbatches 4 --cap 2";
  const CommandResult found = run_schedule_line(words);
  CHECK(found.exit_code == 0);
  CHECK_THAT(found.err, ContainsSubstring("optimum: makespan "));
  const Json figures = Json::parse(run_schedule_line(words + " | check - | simulate - --json").out);
  const Json answer = searched("--devices 3 --microbatches 4 --cap 2");
  CHECK(answer.at("optimal") == true);
  CHECK(answer.at("gap") == 0);
  CHECK(answer.at("makespan") == figures.at("makespan"));
  CHECK(answer.at("bound") == figures.at("makespan"));
  CHECK(answer.at("peak_in_flight") == 2);
  CHECK(answer.at("builder") == nullptr);
  CHECK(answer.at("schedule") == found.out);
}

TEST_CASE("search judges builders", "[tools][schedule]") {
  const Json answer = searched("--devices 4 --microbatches 6 --cap 4");
  CHECK(answer.at("builder").at("name") == "1f1b");
  CHECK(answer.at("builder").at("makespan") == answer.at("makespan"));
  const Json wave =
      searched("--devices 4 --microbatches 6 --chunks 2 --placement wave --split --cap 8");
  CHECK(wave.at("builder").at("name") == "zb-v");
  CHECK(wave.at("makespan") == 19.5);
}

TEST_CASE("search looks at costs", "[tools][schedule]") {
  const TemporaryFolder folder;
  const std::string costs =
      folder.write("c.json",
                   R"({"version": 1, "stages": {"usual": {"F": 0.004, "B": 0.007}, "each": [
          {"stage": 1, "F": 0.002, "B": 0.004}]}, "links": {"usual": {"latency": 0.0005}}})");
  const Json answer = searched("--devices 2 --microbatches 3 --cap 2 --costs " + costs);
  CHECK(answer.at("optimal") == true);
  const std::string file = folder.write("s.txt", answer.at("schedule").get<std::string>());
  const Json figures =
      Json::parse(run_schedule({"simulate", file, "--costs", costs, "--json"}).out);
  CHECK(answer.at("makespan").get<double>() == Catch::Approx(figures.at("makespan").get<double>()));
}

TEST_CASE("search takes the durations of simulate", "[tools][schedule][costs]") {
  const std::string durations = " --f 3 --b 5 --latency 0.5";
  const std::string job = "--devices 2 --microbatches 3 --cap 2" + durations;
  const Json figures =
      Json::parse(run_schedule_line("search " + job + " | simulate - --json" + durations).out);
  CHECK(searched(job).at("makespan").get<double>() ==
        Catch::Approx(figures.at("makespan").get<double>()));
  check_message(run_schedule_line("search " + job + " --costs c.json"), 2, {"--costs or --f"});
}

TEST_CASE("a search that runs out of time says how far the best may be", "[tools][schedule]") {
  const std::string words =
      "--devices 4 --microbatches 6 --chunks 2 --placement wave --split --cap 5 --seconds 1e-9";
  const CommandResult people = run_schedule_line("search " + words);
  CHECK(people.exit_code == 0);
  CHECK_THAT(people.err,
             ContainsSubstring("best found in 1e-09 s") && ContainsSubstring("bound ") &&
                 ContainsSubstring("gap ") && ContainsSubstring("--seconds"));
  const Json answer = searched(words);
  CHECK(answer.at("optimal") == false);
  CHECK(answer.at("gap") > 0);
  CHECK(answer.at("bound") < answer.at("makespan"));
}

TEST_CASE("search puts two copies of the model against each other", "[tools][schedule]") {
  const std::string words = "search --devices 4 --microbatches 8 --cap 4 --placement replicas";
  const CommandResult found = run_schedule_line(words);
  CHECK(found.err ==
        "optimum: makespan 28, bubble 14.3%, in flight 4, the best builder, chimera, has 30\n");
  const Json figures = Json::parse(run_schedule_line(words + " | check - | simulate - --json").out);
  CHECK(figures.at("makespan") == 28);
}

TEST_CASE("on a terminal search says how far it is, and in the end what it found",
          "[tools][schedule][progress]") {
  const TemporaryFolder folder;
  std::vector<std::string> words{"search",
                                 "--devices",
                                 "4",
                                 "--microbatches",
                                 "6",
                                 "--cap",
                                 "3",
                                 "--split",
                                 "-o",
                                 folder.path() + "/best.txt"};
  const CommandResult terminal = run_schedule(words, "", {.terminal = true});
  CHECK_THAT(
      terminal.err,
      StartsWith("\rsearching: best 25, bound ") && ContainsSubstring(", 0 s\x1b[K") &&
          EndsWith("\r\x1b[Koptimum: makespan 24, bubble 25.0%, in flight 3, the best builder, "
                   "zb-auto, has 25\n"));
  CHECK_THAT(run_schedule(words).err, StartsWith("optimum: "));
  words.emplace_back("--json");
  CHECK(run_schedule(words, "", {.terminal = true}).err.empty());
}

TEST_CASE("search writes the schedule where it is told to", "[tools][schedule]") {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/best.txt";
  const std::vector<std::string> words{
      "search", "--devices", "2", "--microbatches", "3", "--cap", "1", "-o", file};
  const CommandResult found = run_schedule(words);
  CHECK(found.exit_code == 0);
  CHECK(found.out.empty());
  CHECK(Schedule::parse(read_text_file(file)).rows().size() == 2);
  CHECK(run_schedule({"check", file}).exit_code == 0);
}

TEST_CASE("search says what it needs, lacks and cannot do", "[tools][schedule][bad-input]") {
  const auto refused = [](const std::string& words, const std::vector<std::string>& parts) {
    CAPTURE(words);
    check_message(run_schedule_line("search " + words), 2, parts);
  };
  refused("--devices 4 --microbatches 6", {"--cap"});
  refused("--devices 4 --cap 6", {"--microbatches"});
  refused("--microbatches 4 --cap 6", {"--devices"});
  refused("--devices 4 --microbatches 6 --cap 0", {"--cap", "'0'"});
  refused("--devices 4 --microbatches 6 --chunks 3 --cap 2", {"nearest: 3"});
  refused("--devices 4 --microbatches 6 --cap 4 --placement v", {"loop, wave or replicas", "'v'"});
  refused("--devices 4 --microbatches 6 --cap 4 --seconds 0", {"--seconds", "'0'"});
  refused("--devices 4 --microbatches 7 --cap 4 --placement replicas", {"even", "6 or 8"});
  refused("--devices 60000 --microbatches 60000 --cap 4", {"smaller numbers"});
  refused("--devices 4 --microbatches 6 --cap 4 -o /none/x", {"/none/x"});
}

}  // namespace stagecraft::tests
