/// Checks that every cut of a model that trains also evaluates: all models of tests/data/models,
/// cut at random.
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
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/program/stage_graph_of.h"
#include "stagecraft/compiler/shapes/evaluation_stages.h"
#include "stagecraft/compiler/shapes/evaluations.h"
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

TEST_CASE("whatever cut of a model trains, evaluates (EV-1)", "[import][evaluation]") {
  std::mt19937 random(29);
  std::chrono::steady_clock::duration used{};
  int cuts = 0;
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
      }
      ++cuts;
      used += std::chrono::steady_clock::now() - begun;
    }
  }
  CHECK(cuts >= 40);
}

}  // namespace
}  // namespace stagecraft
