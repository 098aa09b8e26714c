/// Tests `stagecraft profile`: its table, its costs.json, and its refusals.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/scheduler/formats/json/costs_json.h"
#include "stagecraft/tests/compiler/import/unpacked_inputs.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/own_cache.h"
#include "stagecraft/tests/tools/common/command_run.h"
#include "stagecraft/tools/profile/profile.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

CommandResult run_profile(const std::vector<std::string>& words) {
  return run_in_test(&tools::profile_model, words);
}

std::vector<std::string> small_llama(std::vector<std::string> more) {
  std::vector<std::string> words{"--model",
                                 "llama",
                                 "--layers",
                                 "1",
                                 "--dim",
                                 "16",
                                 "--heads",
                                 "2",
                                 "--ffn",
                                 "32",
                                 "--seq",
                                 "8"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Adds the option that accepts a busy machine.
std::vector<std::string> kept(std::vector<std::string> words) {
  words.insert(words.end(), {"--most-noise", "1e9"});
  return words;
}

std::vector<std::string> gpt2(std::vector<std::string> more) {
  const std::string folder = fmt::format("{}/tests/data/models/gpt2", STAGECRAFT_SOURCE_DIR);
  std::vector<std::string> words{
      "--model-file", folder + "/model.pt", "--data", testing::unpacked_inputs(folder)};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_CASE("a model by name is profiled once", "[tools][profile]") {
  const OwnCache cache;
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/costs.json";
  const CommandResult first =
      run_profile(small_llama(kept({"--microbatch-sizes", "2,1", "-o", file})));
  CAPTURE(first.err);
  REQUIRE(first.exit_code == 0);
  for (const char* part : {"llama: ",
                           "1 thread;",
                           "the slowest ones on 2 samples",
                           "aten::",
                           "additions",
                           "parameters: ",
                           "a transfer between threads",
                           "noise: ",
                           "4 of 4 measured now"}) {
    CHECK_THAT(first.out, ContainsSubstring(part));
  }
  const std::string text = read_text_file(file);
  const ReadCosts read = parse_costs(text);
  CHECK(read.notes.empty());
  CHECK(read.costs.samples == 2);
  CHECK(read.costs.operators_at.contains(1));
  CHECK_FALSE(read.costs.parameters.empty());

  const CommandResult second =
      run_profile(small_llama(kept({"--microbatch-sizes", "2,1", "-o", "-"})));
  CHECK(second.exit_code == 0);
  CHECK(second.out == text);
  const json object =
      json::parse(run_profile(small_llama(kept({"--microbatch-sizes", "1,2", "--json"}))).out);
  CHECK(object.at("measured") == 0);
  CHECK(object.at("sizes").size() == 2);
  CHECK(object.at("sizes").at(0).at("samples") == 1);
  CHECK(object.at("sizes").at(0).at("forward_seconds").get<double>() > 0);
  CHECK(object.at("link").at("between") == "threads");
}

TEST_CASE("a noisy profile is told and measured again the next time", "[tools][profile]") {
  const OwnCache cache;
  const std::vector<std::string> words = small_llama({"--most-noise", "0", "--json"});
  const CommandResult first = run_profile(words);
  CAPTURE(first.err);
  REQUIRE(first.exit_code == 0);
  CHECK_THAT(first.err, ContainsSubstring("stagecraft profile: note: the machine is busy"));
  CHECK(json::parse(run_profile(words).out).at("measured") == 1);
}

TEST_CASE("a model from a file is profiled on its data", "[tools][profile]") {
  const OwnCache cache;
  const json object = json::parse(run_profile(gpt2({"--json"})).out);
  CHECK(object.at("measured") == 3);
  CHECK(object.at("parameters") == 28);
  CHECK(object.at("held_bytes") == 4 * object.at("parameter_bytes").get<double>());
}

TEST_CASE("wrong words of profile are refused", "[tools][profile][bad-input]") {
  const OwnCache cache;
  const auto refused = [](const std::vector<std::string>& words,
                          const std::vector<std::string>& parts) {
    check_message(run_profile(words), 2, parts);
  };
  refused({"--model", "lama"}, {"--model expects", "did you mean llama"});
  refused({"--model", "llama", "--patch", "4"}, {"--patch is an option of vit and clip"});
  refused({"--model", "vit", "--text", "a"}, {"--text is an option of llama and moe"});
  refused({"--data", "here"}, {"--data expects --model-file"});
  refused({"--model-file", "here.pt"}, {"--data DIR"});
  refused({"--model-file", "here.pt", "--data", "d", "--model", "vit"},
          {"--model is an option of the models that have a name"});
  refused({"--model-file", "here.pt", "--data", "/nowhere"}, {"here.pt"});
  refused(small_llama({"--microbatch-sizes", "0"}), {"--microbatch-sizes"});
  refused(small_llama({"--microbatch-sizes", "2,x"}), {"--microbatch-sizes"});
  refused(small_llama({"--microbatch-sizes", "2,2"}), {"2 appears twice"});
  refused(gpt2({"--microbatch-sizes", "1000"}), {"the samples of the batch", "found 1000"});
  refused(small_llama({"--workers", "actors"}), {"--workers expects threads or processes"});
  refused(small_llama({"-o", "-", "--json"}), {"--json"});
  refused(small_llama({"-o", "/nowhere/costs.json"}), {"/nowhere"});
  refused(small_llama({"--microbatchsizes", "1"}), {"--microbatch-sizes"});
}

TEST_CASE("help of profile is good", "[tools][profile]") {
  const CommandResult help = run_profile({"--help"});
  CHECK(help.exit_code == 0);
  for (const char* part : {"--microbatch-sizes", "--model-file", "costs.json", "--fresh"}) {
    CHECK_THAT(help.out, ContainsSubstring(part));
  }
}

}  // namespace
}  // namespace stagecraft::tests
