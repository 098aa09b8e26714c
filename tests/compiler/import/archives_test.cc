/// Models that PyTorch wrote, of both kinds of file, trained here as it trained them.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/reference.h"
#include "stagecraft/actors/executor/state_names.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/import/model_file.h"
#include "stagecraft/tests/compiler/import/archive_folder.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::ArchiveFolder;

constexpr double kTolerance = 1e-5;  ///< relative, of every loss; of a tensor, to its largest

std::map<std::string, at::Tensor> by_name(const std::vector<NamedTensor>& tensors,
                                          std::string_view kind) {
  std::map<std::string, at::Tensor> result;
  for (const NamedTensor& t : tensors) {
    if (t.name.starts_with(kind)) {
      result.emplace(t.name.substr(kind.size()), t.tensor);
    }
  }
  return result;
}

double distance(const at::Tensor& expected, const at::Tensor& found) {
  const at::Tensor a = expected.to(at::kDouble);
  const double largest = a.numel() == 0 ? 0.0 : a.abs().max().item().toDouble();
  const double apart =
      a.numel() == 0 ? 0.0 : a.sub(found.to(at::kDouble)).abs().max().item().toDouble();
  return largest > 0.0 ? apart / largest : apart;
}

/// The inputs of a step as the file takes them.
Batch batch_for(const ModelFile& model, const ArchiveFolder& folder, int step) {
  Batch batch = folder.batch(step);
  if (batch.size() + 1 == model.inputs.size()) {
    // Exported with the parts of its last argument by name: [2, n] in each microbatch.
    const at::Tensor last = batch.back().tensor.view({folder.microbatches, 2, -1});
    batch.pop_back();
    batch.emplace_back(last.select(1, 0).flatten());
    batch.emplace_back(last.select(1, 1).flatten());
  }
  return batch;
}

void check_trains(const ArchiveFolder& folder, const std::string& file) {
  ModelFile model = load_model((folder.path / file).string());
  const std::vector<at::Tensor> arguments = folder.arguments(0, 0);
  for (std::size_t i = 0; i < std::min(arguments.size(), model.inputs.size()); ++i) {
    if (!model.inputs[i].known) {
      model.inputs[i].known = true;
      model.inputs[i].sizes = arguments[i].sizes().vec();
    }
  }
  const auto compiled = [&] {
    return compile(model,
                   {.inputs = batch_for(model, folder, 0), .microbatches = folder.microbatches});
  };
  if (!folder.refused.empty()) {
    CHECK_THAT(refusal(compiled, Errc::CompileCapture), ContainsSubstring("aten::"));
    return;
  }
  const Program program = compiled();
  Reference reference(program, Sgd{.lr = folder.lr}, {});
  double worst = 0.0;
  for (int k = 0; k < folder.steps(); ++k) {
    const ReferenceStep step = reference.step(batch_for(model, folder, k), {});
    for (int j = 0; j < folder.microbatches; ++j) {
      const double expected =
          folder.microbatch_losses[static_cast<std::size_t>(k)][static_cast<std::size_t>(j)];
      CAPTURE(k, j);
      CHECK(step.losses[static_cast<std::size_t>(j)] ==
            Catch::Approx(expected).epsilon(kTolerance).margin(0));
      worst = std::max(worst, std::abs(step.losses[static_cast<std::size_t>(j)] / expected - 1));
    }
  }
  auto found = by_name(reference.state(), kWeight);
  found.merge(by_name(reference.state(), kBuffer));
  double farthest = 0.0;
  for (const NamedTensor& expected : folder.final) {
    CAPTURE(expected.name);
    auto tensor = found.find(expected.name);
    if (tensor == found.end()) {  // no operator uses it
      const auto initial = std::ranges::find(model.parameters, expected.name, &NamedTensor::name);
      REQUIRE(initial != model.parameters.end());
      tensor = found.emplace(expected.name, initial->tensor.detach()).first;
    }
    CHECK(distance(expected.tensor, tensor->second) <= kTolerance);
    farthest = std::max(farthest, distance(expected.tensor, tensor->second));
  }
  if (std::getenv("STAGECRAFT_VERBOSE") != nullptr) {
    std::printf(
        "%s/%s losses %.2g weights %.2g\n", folder.name().c_str(), file.c_str(), worst, farthest);
  }
}

TEST_CASE("every model that PyTorch wrote trains as there", "[compiler][import][archives]") {
  const std::string file = GENERATE("model.pt2", "model.pt");
  const std::vector<ArchiveFolder> folders = testing::archive_folders();
  if (folders.empty()) {
    SKIP("there are no archives in tests/data/models");
  }
  for (const ArchiveFolder& folder : folders) {
    if (!std::filesystem::exists(folder.path / file)) {
      continue;
    }
    DYNAMIC_SECTION(folder.name() << "/" << file) {
      check_trains(folder, file);
    }
  }
}

}  // namespace
}  // namespace stagecraft
