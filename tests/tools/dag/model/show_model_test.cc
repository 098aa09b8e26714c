/// Tests `stagecraft dag show` with a model: the operators of nodes, and what is refused.
#include "stagecraft/tools/dag/model/show_model.h"

#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/tests/compiler/import/unpacked_inputs.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/tools/common/command_run.h"
#include "stagecraft/tools/train/catalog/models.h"

// This include comes last: LibTorch has a CHECK of its own.
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using Words = std::vector<std::string>;

constexpr const char* kTwoRanks = "split {} dim=MB n=2\nplace {PP:0} on [0]\nplace {PP:1} on [1]\n";
constexpr const char* kTwoCopies =
    "split {} dim=MB n=2\nplace {PP:*} on [0,1]\nreplicate {PP:*} on [0,1] bucket_size=200K\n";

CommandResult show_with_model(Words words, const std::string& text) {
  words.insert(words.begin(), {"show", "-"});
  return run_in_test(&tools::dag_of_models, words, text);
}

json shown_dag(Words words, const std::string& text) {
  words.emplace_back("--json");
  const CommandResult result = show_with_model(std::move(words), text);
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  return json::parse(result.out);
}

/// Returns the operators by stage and chunk. Checks that all nodes of a chunk have the same ones,
/// and that other nodes have none.
std::map<std::pair<int, int>, Words> chunk_operators(const json& dag) {
  std::map<std::pair<int, int>, Words> operators;
  bool agree = true;
  for (const json& node : dag.at("nodes")) {
    const std::string kind = node.at("kind");
    const bool computes = kind == "forward" || kind == "backward";
    CHECK(node.contains("operators") == computes);
    if (computes) {
      const auto names = node.at("operators").get<Words>();
      const auto [at, added] =
          operators.insert({{node.at("stage").get<int>(), node.at("chunk").get<int>()}, names});
      agree = agree && (added || at->second == names);
    }
  }
  CHECK(agree);
  return operators;
}

}  // namespace

TEST_CASE("computing nodes of every model know the operators of their chunk", "[tools][dag]") {
  for (const tools::ModelEntry& model : tools::models()) {
    CAPTURE(model.name);
    const Words words{"--model", std::string(model.name)};
    const auto two = chunk_operators(shown_dag(words, kTwoRanks));
    CHECK(two.size() == 2);
    const auto one = chunk_operators(shown_dag(words, "place {PP:0} on [0]\n"));
    REQUIRE(one.size() == 1);
    CHECK(two.at({0, 0}).size() > 3);
    CHECK(two.at({1, 0}).size() > 3);
    CHECK(one.begin()->second.size() >= two.at({0, 0}).size());
  }
}

TEST_CASE("sums in parts divide the operators of a stage among its chunks", "[tools][dag]") {
  const Words words{"--model", "llama", "--stages", "1"};
  const auto whole = chunk_operators(shown_dag(words,
                                               "place {PP:*} on [0,1]\n"
                                               "replicate {PP:*} on [0,1]\n"));
  const auto parts = chunk_operators(shown_dag(words, kTwoCopies));
  CHECK(parts.size() > 1);
  Words joined;
  for (const auto& [chunk, names] : parts) {
    joined.insert(joined.end(), names.begin(), names.end());
  }
  CHECK(joined == whole.at({0, 0}));
}

TEST_CASE("a schedule takes a model too, and stages of replicas know their operators",
          "[tools][dag]") {
  const CommandResult chimera = run_command(
      {STAGECRAFT_COMMAND, "schedule", "make", "chimera", "--devices", "2", "--microbatches", "4"});
  REQUIRE(chimera.exit_code == 0);
  const auto operators = chunk_operators(shown_dag({"--model", "llama"}, chimera.out));
  REQUIRE(operators.size() == 4);
  CHECK(operators.at({0, 0}) != operators.at({1, 0}));
  CHECK(operators.at({0, 0}) == operators.at({2, 0}));
  CHECK(operators.at({1, 0}) == operators.at({3, 0}));
}

TEST_CASE("a model from a file is cut where asked", "[tools][dag]") {
  const std::string folder = STAGECRAFT_SOURCE_DIR "/tests/data/models/llama";
  const std::string places = "place {PP:0} on [0]\nplace {PP:1} on [1]\n";
  const Words words{"--microbatches",
                    "4",
                    "--model-file",
                    folder + "/model.pt2",
                    "--data",
                    testing::unpacked_inputs(folder)};
  CHECK(chunk_operators(shown_dag(words, places)).size() == 2);
  Words cut = words;
  cut.insert(cut.end(), {"--cut", "op:5"});
  CHECK(chunk_operators(shown_dag(cut, places)).at({0, 0}).size() == 5);
  Words three = words;
  three[1] = "3";
  check_message(show_with_model(three, places), 2, {"FILE expects 4 microbatches", "found 3"});
}

TEST_CASE("the page of a model has its operators and no markup of its own", "[tools][dag]") {
  const CommandResult page = show_with_model({"--model", "vit", "--html", "-"}, kTwoRanks);
  CAPTURE(page.err);
  REQUIRE(page.exit_code == 0);
  CHECK_THAT(page.out, ContainsSubstring("\"aten::conv2d\"") || ContainsSubstring("\"aten::"));
}

TEST_CASE("without a model the command is the same as without LibTorch", "[tools][dag]") {
  const CommandResult here = show_with_model({"--json"}, kTwoRanks);
  REQUIRE(here.exit_code == 0);
  CHECK(here.out == run_command({"bash",
                                 "-c",
                                 "printf '%s' \"$2\" | \"$1\" dag show - --json",
                                 "bash",
                                 STAGECRAFT_COMMAND,
                                 kTwoRanks})
                        .out);
}

TEST_CASE("the program takes a model, and its help lists the options of models", "[tools][dag]") {
  const CommandResult help = run_command({STAGECRAFT_COMMAND, "dag", "show", "--help"});
  CHECK(help.exit_code == 0);
  CHECK_THAT(help.out,
             ContainsSubstring("--model-file") && ContainsSubstring("--layers") &&
                 ContainsSubstring("--svg") && ContainsSubstring("--cut"));
  const CommandResult run = run_command({"bash",
                                         "-c",
                                         "printf '%s' \"$2\" | \"$1\" dag show - --model=llama",
                                         "bash",
                                         STAGECRAFT_COMMAND,
                                         kTwoRanks});
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, ContainsSubstring("2 stages, 2 microbatches"));
}

TEST_CASE("models and options that do not fit are refused", "[tools][dag][bad-input]") {
  check_message(
      show_with_model({"--model", "lama"}, kTwoRanks), 2, {"lama", "did you mean", "llama"});
  check_message(show_with_model({"--layers", "4"}, kTwoRanks), 2, {"--layers expects --model"});
  check_message(show_with_model({"--cut", "layers.1"}, kTwoRanks), 2, {"--cut expects --model"});
  check_message(
      show_with_model({"--model", "vit", "--ffn", "4", "--seq", "8"}, kTwoRanks), 2, {"--seq"});
  check_message(show_with_model({"--model", "llama", "--graph", "0-1"}, kTwoRanks),
                2,
                {"--graph is for stages without a model"});
  check_message(show_with_model({"--model-file", "/nowhere.pt2"}, kTwoRanks), 2, {"--data DIR"});
  // A model of another number of stages.
  check_message(show_with_model({"--model", "llama", "--layers", "1"}, kTwoRanks), 2, {"--layers"});
  check_message(show_with_model({"--model", "llama", "--cut", "layers.1,layers.2"}, kTwoRanks),
                2,
                {"--cut expects places that make 2 stages", "found 3"});
  check_message(
      show_with_model({"--model", "llama", "--stages", "3"}, kTwoRanks), 1, {"PP:2", "place"});
  check_message(
      show_with_model({"--model", "llama"}, "split {} dim=MB n=2\n"), 2, {"expects --stages N"});
  check_message(
      show_with_model({"--model", "llama", "--svg", "-"},
                      "split {} dim=MB n=200\nplace {PP:0} on [0]\nplace {PP:1} on [1]\n"),
      2,
      {"at most 1000 nodes", "fewer microbatches"});
}

}  // namespace stagecraft::tests
