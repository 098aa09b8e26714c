/// Checks that every cut of a model that trains also evaluates, with the values of the uncut model:
/// all models of tests/data/models, cut at random.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <random>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/cut/cut_into_stages.h"
#include "stagecraft/compiler/cut/cut_points.h"
#include "stagecraft/compiler/import/describe_inputs.h"
#include "stagecraft/compiler/import/load_model.h"
#include "stagecraft/compiler/libtorch/same_bits.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/module/split_batch.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/program/stage_graph_of.h"
#include "stagecraft/compiler/shapes/evaluation_stages.h"
#include "stagecraft/compiler/shapes/evaluations.h"
#include "stagecraft/compiler/stage/probe.h"
#include "stagecraft/tests/compiler/import/archive_folder.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using testing::ArchiveFolder;

constexpr std::chrono::seconds kBudget{20};  ///< for all cuts; every model has at least one
constexpr int kCuts = 40;

/// Returns up to six stages, each beginning at an allowed point.
At random_cut(const std::vector<std::size_t>& points, std::mt19937& random) {
  std::vector<std::size_t> firsts;
  std::sample(
      points.begin() + 1, points.end(), std::back_inserter(firsts), 1 + random() % 5, random);
  At at{};
  for (const std::size_t first : firsts) {
    at.places.push_back("op:" + std::to_string(first));
  }
  return at;
}

/// Returns the program with another cut, with the parts that an evaluation reads.
CompiledProgram cut_again(const CompiledProgram& whole, const Cut& cut) {
  CompiledProgram program = whole;
  program.assignment = cut_into_stages(whole.graph, cut, {});
  program.partition = partition(whole.graph, program.assignment);
  program.stage_graph = stage_graph_of(program.partition);
  program.marked = false;
  return program;
}

/// Runs the stages of an evaluation one after the other. Returns the values that they send to the
/// driver, then the loss if there is one.
Tensors evaluated(const Graph& graph, Partition& stages, const Tensors& inputs) {
  const std::vector<StageRun> runs = run_stages(graph, stages, inputs, {});
  Tensors values;
  const auto add_from = [&](const StageProgram& stage, ValueId result) {
    const auto place = std::ranges::find(stage.outputs, result, &StageOutput::value);
    if (place != stage.outputs.end()) {
      values.push_back(
          runs[stage.id.index()]
              .result.outputs[static_cast<std::size_t>(place - stage.outputs.begin())]);
    }
  };
  for (const ValueId result : results_of(graph)) {
    for (const StageProgram& stage : stages.stages) {
      add_from(stage, result);
    }
  }
  for (const StageRun& run : runs) {
    if (run.result.loss.defined()) {
      values.push_back(run.result.loss);
    }
  }
  return values;
}

Tensors evaluated_whole(const Graph& graph, const Tensors& inputs) {
  const StageAssignment one{std::vector<int>(graph.nodes.size(), 0), {"whole"}};
  Partition stages = partition(graph, one, results_of(graph));
  return evaluated(graph, stages, inputs);
}

TEST_CASE("every cut of a model that trains also evaluates, with the same values (EV-1)",
          "[import][evaluation]") {
  const SingleThreaded alone;
  std::mt19937 random(29);
  std::chrono::steady_clock::duration used{};
  int cuts = 0;
  int evaluations = 0;
  for (const ArchiveFolder& folder : testing::archive_folders()) {
    const char* const file =
        std::filesystem::exists(folder.path / "model.pt2") ? "model.pt2" : "model.pt";
    if (!folder.refused.empty()) {
      continue;
    }
    CAPTURE(folder.name(), file);
    ModelFile model = load_model((folder.path / file).string());
    const MicrobatchFiles data = folder.data();
    describe_inputs(model, data);
    const Batch batch = data.batch(0);
    const Program whole = compile(model, {.inputs = batch, .microbatches = folder.microbatches});
    const std::vector<Graph> graphs{
        whole.evaluations()->prediction(batch).compiled().graph,
        whole.evaluations()->measurement({}, batch, {}).compiled().graph};
    const Tensors microbatch =
        split_batch(batch, whole.compiled().inputs, folder.microbatches, "input").front();
    const std::vector<std::size_t> points = cut_points(whole.compiled().graph);
    if (points.size() < 2) {
      continue;
    }
    for (int i = 0; i < kCuts && (i == 0 || used < kBudget); ++i) {
      const auto begun = std::chrono::steady_clock::now();
      const At cut = random_cut(points, random);
      CAPTURE(cut.places);
      const CompiledProgram program = cut_again(whole.compiled(), cut);
      for (Graph graph : graphs) {
        Partition found;
        REQUIRE_NOTHROW(found = evaluation_stages(graph, program));
        CHECK(found.stages.size() == program.partition.stages.size());
        if (i == 0) {
          const Tensors expected = evaluated_whole(graph, microbatch);
          const Tensors values = evaluated(graph, found, microbatch);
          REQUIRE(values.size() == expected.size());
          for (std::size_t v = 0; v < values.size(); ++v) {
            CHECK(same_bits(values[v], expected[v]));
          }
          ++evaluations;
        }
      }
      ++cuts;
      used += std::chrono::steady_clock::now() - begun;
    }
  }
  CHECK(cuts >= 40);
  CHECK(evaluations >= 70);  // two of each model that can be cut
}

}  // namespace
}  // namespace stagecraft
