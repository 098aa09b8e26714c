/// The contract of a model of `--model`, for every model of the catalog. A new model needs no case
/// here.

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include <ATen/ops/equal.h>

#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/common/runtime_run.h"
#include "stagecraft/tests/tools/train/run/train_run.h"
#include "stagecraft/tools/common/memory_limits.h"
#include "stagecraft/tools/train/catalog/models.h"
#include "stagecraft/tools/train/catalog/open_work.h"
#include "stagecraft/tools/train/options/parse_options.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using tools::ModelEntry;
using tools::ModelSize;
using tools::WorkBatch;
using tools::WorkShape;

const ModelEntry& any_model() {
  const std::size_t index = GENERATE(range(std::size_t{0}, tools::models().size()));
  return tools::models()[index];
}

/// Returns the words of a run of a model in its usual size, on small batches.
std::vector<std::string> run_of(const ModelEntry& model, const std::vector<std::string>& more) {
  std::vector<std::string> words{STAGECRAFT_COMMAND,
                                 "train",
                                 "--model",
                                 std::string(model.name),
                                 "--steps",
                                 "2",
                                 "--stages",
                                 "2",
                                 "--microbatches",
                                 "2",
                                 "--microbatch-size",
                                 "2"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::unique_ptr<tools::Work> work_of(const ModelEntry& model) {
  const auto options = std::get<tools::TrainOptions>(
      tools::parse_train_options({"--model", std::string(model.name)}));
  return tools::open_work({.model = options.model, .data = options.data, .evaluates = true},
                          tools::memory_left());
}

bool equal(const Batch& a, const Batch& b) {
  return std::ranges::equal(a, b, [](const BatchTensor& x, const BatchTensor& y) {
    return at::equal(x.tensor, y.tensor);
  });
}

bool equal(const WorkBatch& a, const WorkBatch& b) {
  return equal(a.inputs, b.inputs) && equal(a.labels, b.labels);
}

}  // namespace

TEST_CASE("every model of the catalog trains with the bits of one process, and evaluates",
          "[tools][train][models][catalog]") {
  const ModelEntry& model = any_model();
  CAPTURE(model.name);
  const TrainOutput output = train_output(run_of(model, {"--verify", "--eval-every", "1"}));
  CHECK(output.steps.size() == 2);
  CHECK(output.verify.at("bit_equal") == true);
  const auto is_evaluation = [](const json& event) { return event.at("event") == "eval"; };
  CHECK(std::ranges::count_if(output.others, is_evaluation) == 2);
}

TEST_CASE("a dry run of every model shows the weights that its stages have",
          "[tools][train][models][catalog]") {
  const ModelEntry& model = any_model();
  CAPTURE(model.name);
  const CommandResult result = run_here(run_of(model, {"--dry-run", "--json"}));
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const json object = json::parse(result.out);
  double on_stages = 0;
  for (const json& stage : object.at("stages")) {
    on_stages += stage.at("weight_bytes").get<double>();
  }
  const json& weights = object.at("memory").at("lines").at(0);
  CHECK(weights.at("what") == "weights of the model");
  CHECK(weights.at("bytes").get<double>() == on_stages);
}

TEST_CASE("the size of every model is known before it is built", "[tools][models][catalog]") {
  const ModelEntry& model = any_model();
  CAPTURE(model.name);
  const auto work = work_of(model);
  const WorkShape whole = WorkShape::uncut(/*microbatches=*/2, /*microbatch_size=*/2);
  const tools::WorkBytes bytes = work->bytes(whole);
  const Program program = work->compile(whole);
  double weights = 0, kept = 0;
  for (const StageProgram& stage : program.compiled().partition.stages) {
    weights += static_cast<double>(weight_bytes(stage));
    kept += static_cast<double>(stage.saved_bytes);
  }
  CHECK(bytes.parameters == weights);
  CHECK(bytes.microbatch <= kept);
  CHECK(bytes.microbatch >= kept / 4);
}

TEST_CASE("a batch of every model depends on its step alone, and no step has that of evaluations",
          "[tools][models][catalog]") {
  const ModelEntry& model = any_model();
  CAPTURE(model.name);
  const auto work = work_of(model), again = work_of(model);
  const WorkShape shape = WorkShape::uncut(/*microbatches=*/2, /*microbatch_size=*/2);
  CHECK(equal(work->batch(3, shape), again->batch(3, shape)));
  CHECK_FALSE(equal(work->batch(3, shape), work->batch(4, shape)));
  CHECK_FALSE(equal(work->batch(0, shape), work->evaluation(0, shape)));
}

TEST_CASE("every model is in the help and in the documents with its sizes",
          "[tools][models][catalog]") {
  const ModelEntry& model = any_model();
  CAPTURE(model.name);
  const std::string help = std::get<tools::HelpText>(tools::parse_train_options({"--help"})).text;
  const std::string page = read_text_file(STAGECRAFT_SOURCE_DIR "/docs/train-command.md");
  CHECK_THAT(page, ContainsSubstring("| `" + std::string(model.name) + "`"));
  CHECK((model.data == "text" || model.data == "images"));
  CHECK_FALSE(model.summary.empty());
  tools::ModelSizes usual;
  for (const ModelSize& size : model.sizes) {
    CAPTURE(size.name);
    CHECK_THAT(help, ContainsSubstring("--" + std::string(size.name) + " "));
    if (size.fallback) {
      usual.set(size.name, *size.fallback);
    }
  }
  CHECK(model.wrong(usual).empty());
}

TEST_CASE("models are named in words, in the order of the catalog", "[tools][models][catalog]") {
  const auto named = [](std::initializer_list<std::string_view> names) {
    return tools::names_of_models([&](const ModelEntry& model) {
      return std::ranges::find(names, model.name) != names.end();
    });
  };
  CHECK(named({}) == "none");
  CHECK(named({"vit"}) == "vit");
  CHECK(named({"vit", "llama"}) == "llama and vit");
  CHECK(named({"clip", "vit", "llama"}) == "llama, vit and clip");
}

}  // namespace stagecraft::tests
