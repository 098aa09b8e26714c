/// Tests `stagecraft schedule make`: every builder's schedule can be made and piped on; a refusal
/// names the possible sizes.

#include <filesystem>

#include <nlohmann/json.hpp>

#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Returns words that make each builder's schedule of four devices (three of a graph) and eight
/// microbatches.
std::vector<std::string> make_words(const BuilderInfo& builder) {
  std::vector<std::string> words{"make", std::string(builder.name), "--microbatches", "8"};
  const std::vector<std::string> more = builder.takes_graph
                                            ? std::vector<std::string>{"--graph", "0-2,1-2"}
                                            : std::vector<std::string>{"--devices", "4"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_CASE("what make prints, check takes and simulate reads, for every builder",
          "[tools][schedule]") {
  for (const BuilderInfo& builder : builders()) {
    CAPTURE(builder.name);
    const CommandResult made = run_schedule(make_words(builder));
    REQUIRE(made.exit_code == 0);
    const CommandResult checked = run_schedule({"check", "-"}, made.out);
    CHECK(checked.exit_code == 0);
    CHECK(checked.out == made.out);
    CHECK_THAT(checked.err, ContainsSubstring("valid: "));
    const CommandResult simulated = run_schedule({"simulate", "-", "--json"}, checked.out);
    REQUIRE(simulated.exit_code == 0);
    CHECK(nlohmann::json::parse(simulated.out).at("microbatches") == 8);
  }
}

TEST_CASE("make writes the array as text", "[tools][schedule]") {
  const CommandResult made =
      run_schedule({"make", "1f1b", "--devices", "2", "--microbatches", "2"});
  CHECK(made.exit_code == 0);
  CHECK(made.out ==
        "0F0 0F1 .   0B0 .   0B1\n"
        ".   1F0 1B0 1F1 1B1 .\n");
}

TEST_CASE("make takes chunks, parameters and edges", "[tools][schedule]") {
  const auto stages = [](const std::string& line) {
    const CommandResult result = run_schedule_line(line + " | simulate - --json");
    CAPTURE(line, result.err);
    REQUIRE(result.exit_code == 0);
    return nlohmann::json::parse(result.out);
  };
  CHECK(stages("make interleaved --devices 2 --microbatches 4 --chunks 3").at("stages") == 6);
  CHECK(stages("make hanayo --devices 4 --microbatches 8 --set waves=2").at("hash") ==
        "2849e29122365ac5");
  CHECK(stages("make pfeife --devices 4 --microbatches 8 --set loops=2 --set block=4 --set "
               "extra=2,2,1,0")
            .at("hash") == "ecf154a83ad04e2d");
  CHECK(stages("make dag-1f1b --graph 0-2,1-2 --microbatches 8").at("hash") == "946ba2f2a8d21aff");
  const TemporaryFolder folder;
  const std::string edges = folder.write("edges", "0-2  # image\n\n1-2,  # text\n");
  CHECK(stages("make dag-1f1b --graph @" + edges + " --microbatches 8").at("hash") ==
        "946ba2f2a8d21aff");
}

TEST_CASE("a file that is made appears whole, and a failure leaves the old one",
          "[tools][schedule]") {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/x.txt";
  const std::vector<std::string> words{
      "make", "gpipe", "--devices", "2", "--microbatches", "2", "-o", file};
  const CommandResult made = run_schedule(words);
  CHECK(made.exit_code == 0);
  CHECK(made.out.empty());
  CHECK(Schedule::parse(read_text_file(file)).rows().size() == 2);
  namespace fs = std::filesystem;
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  CHECK(run_schedule({"make", "gpipe", "--devices", "3", "--microbatches", "2", "-o", file})
            .exit_code == 0);
  CHECK(Schedule::parse(read_text_file(file)).rows().size() == 3);
  CHECK(fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  // No other file is left in the folder.
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("a link that is written to stays a link", "[tools][schedule]") {
  const TemporaryFolder folder;
  const std::string real = folder.write("real.txt", "old");
  const std::string link = folder.path() + "/link.txt";
  std::filesystem::create_symlink("real.txt", link);
  CHECK(run_schedule({"make", "gpipe", "--devices", "1", "--microbatches", "1", "-o", link})
            .exit_code == 0);
  CHECK(std::filesystem::is_symlink(link));
  CHECK(read_text_file(real) == "0F0 0B0\n");
}

TEST_CASE("a place that cannot be written is wrong usage", "[tools][schedule][bad-input]") {
  const TemporaryFolder folder;
  const auto make_at = [](const std::string& place) {
    return run_schedule({"make", "gpipe", "--devices", "1", "--microbatches", "1", "-o", place});
  };
  check_message(make_at("/none/there.txt"), 2, {"/none/there.txt", "No such file"});
  check_message(make_at(folder.path()), 2, {folder.path(), "directory"});
  check_message(make_at("/dev/full"), 2, {"/dev/full", "No space left"});
}

TEST_CASE("an unknown schedule is answered with the nearest", "[tools][schedule][bad-input]") {
  check_message(run_schedule_line("make gpip --devices 4 --microbatches 8"),
                2,
                {"'gpip'", "did you mean gpipe?", "zb-v"});
}

TEST_CASE("illegal parameters name the rule, the constraint and the nearest legal values",
          "[tools][schedule][bad-input]") {
  const auto refused = [](const std::string& words, const std::vector<std::string>& parts) {
    CAPTURE(words);
    check_message(run_schedule_line("make " + words), 2, parts);
  };
  refused("zb-v --devices 4 --microbatches 8 --chunks 3",
          {"V34", "exactly 2 chunks", "nearest: 2"});
  refused("kfkb --devices 4 --microbatches 6 --set k=4", {"V34", "divisible", "3 or 6"});
  refused("chimera --devices 3 --microbatches 8", {"V34", "even number of devices", "2 or 4"});
  refused("dualpipe --devices 4 --microbatches 7", {"V34", "even number of microbatches", "8"});
  refused("dag-gpipe --devices 4 --graph 0-2,1-2 --microbatches 8", {"V34", "nearest: 3"});
  refused("interleaved --devices 2 --microbatches 9", {"V34", "nearest"});
  refused("gpipe --devices 60000 --microbatches 60000", {"V34", "smaller numbers"});
  refused("gpipe --devices 30000 --microbatches 1", {"V34", "smaller numbers"});
}

TEST_CASE("parameters that are unknown, twice or no numbers are wrong usage",
          "[tools][schedule][bad-input]") {
  const auto refused = [](const std::string& words, const std::vector<std::string>& parts) {
    CAPTURE(words);
    check_message(run_schedule_line("make kfkb --devices 4 --microbatches 6 " + words), 2, parts);
  };
  refused("--set kk=2", {"'kk'", "it has k"});
  refused("--set k", {"KEY=VALUE", "'k'"});
  refused("--set =2", {"KEY=VALUE", "'=2'"});
  refused("--set k=2 --set k=3", {"names k twice"});
  refused("--set k=two", {"whole number", "'two'"});
  refused("--set k=", {"whole number"});
  refused("--chunks 0", {"--chunks expects", "'0'"});
  refused("--format txt", {"--format expects", "'txt'", "did you mean text?"});
  refused("--graph 0-x", {"--graph", "'0-x'"});
  refused("--graph @/none", {"--graph", "'/none'"});
  refused("--graph 0-2,1-2", {"no stage graph", "dag-1f1b"});
  refused("--grap 0-1", {"'--grap'", "did you mean --graph?"});
  refused("more", {"no further argument", "'more'"});
}

TEST_CASE("what make needs and lacks is named", "[tools][schedule][bad-input]") {
  check_message(run_schedule({"make"}), 2, {"NAME"});
  check_message(run_schedule_line("make gpipe --devices 4"), 2, {"--microbatches M"});
  check_message(run_schedule_line("make gpipe --microbatches 4"), 2, {"--devices P"});
  check_message(run_schedule_line("make dag-1f1b --microbatches 4"), 2, {"--graph EDGES"});
  check_message(run_schedule_line("make gpipe --devices 4 --microbatches"), 2, {"found none"});
  check_message(
      run_schedule_line("make gpipe --devices 4 --microbatches -1"), 2, {"--microbatches", "'-1'"});
  check_message(run_schedule_line("make dag-1f1b --graph 0-1,1-0 --microbatches 4"), 2, {"cycle"});
}

TEST_CASE("numbers beyond what schedules have are too large", "[tools][schedule][bad-input]") {
  check_message(run_schedule_line("make 1f1b --devices 99999999999 --microbatches 2"),
                2,
                {"--devices", "1 to 65536", "too large"});
  check_message(run_schedule_line("make 1f1b --devices 99999999999999999999 --microbatches 2"),
                2,
                {"too large"});
  check_message(run_schedule_line("make 1f1b --devices 2 --microbatches 16777217"),
                2,
                {"1 to 16777216", "too large"});
  const CommandResult none = run_schedule_line("make 1f1b --devices none --microbatches 2");
  CHECK_THAT(none.err, ContainsSubstring("found 'none'") && !ContainsSubstring("too large"));
}

TEST_CASE("a builder of graphs without one names the option", "[tools][schedule][bad-input]") {
  for (const char* name : {"dag-1f1b", "dag-gpipe", "dag-kfkb"}) {
    check_message(run_schedule({"make", name, "--microbatches", "2"}),
                  2,
                  {name, "--graph 0-2,1-2", "make --help"});
  }
}

TEST_CASE("without a word the command shows what there is", "[tools][schedule][bad-input]") {
  const CommandResult bare = run_schedule({});
  CHECK(bare.exit_code == 2);
  CHECK(bare.out.empty());
  CHECK_THAT(bare.err,
             ContainsSubstring("simulate FILE") && ContainsSubstring("Usage:") &&
                 ContainsSubstring("expected a command"));
}

TEST_CASE("help is good everywhere, an unknown command is not", "[tools][schedule]") {
  for (const char* name : {"list",
                           "make",
                           "check",
                           "simulate",
                           "show",
                           "convert",
                           "diff",
                           "fix",
                           "compare",
                           "search",
                           "sweep"}) {
    CAPTURE(name);
    const CommandResult help = run_schedule({name, "--help"});
    CHECK(help.exit_code == 0);
    CHECK_THAT(help.out, ContainsSubstring(std::string("stagecraft schedule ") + name));
    CHECK_THAT(run_schedule({"--help"}).out, ContainsSubstring(std::string("  ") + name));
    check_message(run_schedule({name, "--halp"}), 2, {"'--halp'", std::string(name) + " --help"});
  }
  check_message(run_schedule({"chekc"}), 2, {"'chekc'", "did you mean check?"});
}

TEST_CASE("make arranges zb-auto for the times of a costs file, and no other builder",
          "[tools][schedule]") {
  const TemporaryFolder folder;
  const std::string costs = folder.write(
      "c.json", R"({"version": 1, "stages": {"usual": {"F": 4, "B": 8, "I": 5, "W": 3}},
                              "links": {"usual": {"latency": 1}}})");
  const std::vector<std::string> size{"--devices", "4", "--microbatches", "8"};
  const auto make = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "make");
    words.insert(words.end(), size.begin(), size.end());
    return run_schedule(words);
  };
  const CommandResult by_file = make({"zb-auto", "--costs", costs, "--set", "cap=6"});
  CHECK(by_file.exit_code == 0);
  CHECK(by_file.out == make({"zb-auto",
                             "--set",
                             "f=4",
                             "--set",
                             "i=5",
                             "--set",
                             "w=3",
                             "--set",
                             "c=1",
                             "--set",
                             "cap=6"})
                           .out);
  const std::string shorter =
      folder.write("s.json", R"({"version": 1, "stages": {"each": [{"stage": 0, "F": 0.1}]}})");
  CHECK_THAT(make({"zb-auto", "--costs", shorter}).err,
             ContainsSubstring("it has the times of 1 stage, but the schedule has"));
  check_message(make({"zb-h1", "--costs", costs}), 2, {"zb-h1 ignores costs", "zb-auto"});
  check_message(make({"zb-auto", "--set", "cap=0"}), 2, {"V34", "cap >= 1", "nearest: 1"});
}

}  // namespace stagecraft::tests
