/// Models that PyTorch wrote, of both kinds of file, trained here as it trained them.
#include <algorithm>
#include <filesystem>
#include <map>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include "stagecraft/actors/cluster.h"
#include "stagecraft/actors/executor/reference.h"
#include "stagecraft/actors/executor/state_names.h"
#include "stagecraft/actors/trainer.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compiled_program.h"
#include "stagecraft/compiler/import/model_file.h"
#include "stagecraft/compiler/thread_count.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
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

/// What LibTorch alone makes of the file: its operators called one after the other, plain SGD.
/// Writes the file's own parameters and buffers.
std::vector<double> plain_losses(const ModelFile& model, const ArchiveFolder& folder) {
  const SingleThreaded alone;  // as a rank computes
  std::vector<at::Tensor> trained;
  for (const NamedTensor& p : model.parameters) {
    const auto same = [&](const at::Tensor& t) { return t.is_same(p.tensor); };
    if (p.tensor.requires_grad() && std::ranges::none_of(trained, same)) {
      trained.push_back(p.tensor);
    }
  }
  std::vector<double> losses;
  for (int k = 0; k < folder.steps(); ++k) {
    for (int j = 0; j < folder.microbatches; ++j) {
      std::vector<at::Tensor> inputs = folder.arguments(k, j);
      if (inputs.size() + 1 == model.inputs.size()) {
        const at::Tensor last = inputs.back();
        inputs.back() = last.select(0, 0).clone();
        inputs.push_back(last.select(0, 1).clone());
      }
      const at::Tensor loss = model.workload.forward(inputs).at(0);
      loss.div(folder.microbatches).backward();
      losses.push_back(loss.item().toDouble());
    }
    const at::NoGradGuard no_grad;
    for (at::Tensor& p : trained) {
      if (p.grad().defined()) {
        p.add_(p.grad(), -folder.lr);
        p.mutable_grad().reset();
      }
    }
  }
  return losses;
}

/// With the shapes of the inputs, which a TorchScript file does not say.
ModelFile known_model(const ArchiveFolder& folder, const std::string& file) {
  ModelFile model = load_model((folder.path / file).string());
  const std::vector<at::Tensor> arguments = folder.arguments(0, 0);
  for (std::size_t i = 0; i < std::min(arguments.size(), model.inputs.size()); ++i) {
    if (!model.inputs[i].known) {
      model.inputs[i].known = true;
      model.inputs[i].sizes = arguments[i].sizes().vec();
    }
  }
  return model;
}

/// Every operator costs the same, so that the cut is the same wherever the test runs.
std::vector<OperatorCost> equal_costs(const Program& program) {
  std::vector<OperatorCost> costs;
  for (const Node& node : program.compiled().graph.nodes) {
    costs.push_back({.name = operator_name(node), .forward = 1});
  }
  return costs;
}

void check_losses(const ArchiveFolder& folder, int step, const std::vector<double>& found) {
  const std::vector<double>& expected = folder.microbatch_losses[static_cast<std::size_t>(step)];
  REQUIRE(found.size() == expected.size());
  for (std::size_t j = 0; j < expected.size(); ++j) {
    CAPTURE(step, j);
    CHECK(found[j] == Catch::Approx(expected[j]).epsilon(kTolerance).margin(0));
  }
}

void check_final(const ArchiveFolder& folder,
                 const ModelFile& model,
                 const std::map<std::string, at::Tensor>& found) {
  for (const NamedTensor& expected : folder.final) {
    CAPTURE(expected.name);
    at::Tensor tensor;
    if (const auto trained = found.find(expected.name); trained != found.end()) {
      tensor = trained->second;
    } else {  // no operator uses it
      const auto initial = std::ranges::find(model.parameters, expected.name, &NamedTensor::name);
      REQUIRE(initial != model.parameters.end());
      tensor = initial->tensor.detach();
    }
    CHECK(distance(expected.tensor, tensor) <= kTolerance);
  }
}

/// In a pipeline of so many ranks, against PyTorch's eager mode and, bit by bit, one process.
void check_pipeline(const ArchiveFolder& folder, const ModelFile& model, const Program& program) {
  const int stages = program.stage_graph().size();
  CAPTURE(stages);
  Reference reference(program, Sgd{.lr = folder.lr}, {});
  Trainer trainer(Cluster::local(stages),
                  program,
                  one_f_one_b(program.stage_graph(), folder.microbatches),
                  Sgd{.lr = folder.lr});
  for (int k = 0; k < folder.steps(); ++k) {
    const std::vector<double> losses = reference.step(batch_for(model, folder, k), {}).losses;
    CHECK(trainer.step(batch_for(model, folder, k), {}).get().losses == losses);
    check_losses(folder, k, losses);
  }
  std::map<std::string, at::Tensor> found;
  for (const auto& [name, tensor] : trainer.state_dict()) {
    found.emplace(name, tensor);
  }
  for (const auto& [name, tensor] : by_name(reference.state(), kWeight)) {
    CAPTURE(name);
    CHECK(found.at(name).equal(tensor));
  }
  found.merge(by_name(reference.state(), kBuffer));
  check_final(folder, model, found);
}

/// In one process at one stage, bit by bit what LibTorch makes of the file by itself.
void check_plain(const ArchiveFolder& folder, const ModelFile& model, const Program& program) {
  Reference reference(program, Sgd{.lr = folder.lr}, {});
  std::vector<double> losses;
  for (int k = 0; k < folder.steps(); ++k) {
    const ReferenceStep step = reference.step(batch_for(model, folder, k), {});
    losses.insert(losses.end(), step.losses.begin(), step.losses.end());
    check_losses(folder, k, step.losses);
  }
  auto found = by_name(reference.state(), kWeight);
  found.merge(by_name(reference.state(), kBuffer));
  check_final(folder, model, found);
  CHECK(losses == plain_losses(model, folder));
  for (const NamedTensor& plain : model.parameters) {
    if (const auto tensor = found.find(plain.name); tensor != found.end()) {
      CAPTURE(plain.name);
      CHECK(tensor->second.equal(plain.tensor));
    }
  }
}

void check_trains(const ArchiveFolder& folder, const std::string& file) {
  const ModelFile model = known_model(folder, file);
  const auto compiled = [&](const Cut& cut) {
    return compile(
        model,
        {.inputs = batch_for(model, folder, 0), .microbatches = folder.microbatches, .cut = cut});
  };
  if (!folder.refused.empty()) {
    CHECK_THAT(refusal([&] { return compiled(AtMarkers()); }, Errc::CompileCapture),
               ContainsSubstring("aten::"));
    return;
  }
  const Program whole = compiled(AtMarkers());
  for (const int stages : {2, 4}) {
    const Balanced cut{.stages = stages, .costs = equal_costs(whole)};
    if (folder.name() == "buffers") {  // what its first operator writes its last one reads
      CHECK_THAT(refusal([&] { return compiled(cut); }, Errc::UsageArgument),
                 ContainsSubstring("can be cut into 1 to 1 stages"));
    } else {
      check_pipeline(folder, model, compiled(cut));
    }
  }
  check_plain(folder, model, whole);
}

void check_all(const std::string& file) {
  const std::vector<ArchiveFolder> folders = testing::archive_folders();
  REQUIRE(folders.size() >= 40);
  for (const ArchiveFolder& folder : folders) {
    if (std::filesystem::exists(folder.path / file)) {
      DYNAMIC_SECTION(folder.name()) {
        check_trains(folder, file);
      }
    }
  }
}

TEST_CASE("a model from a file trains in workers, be they threads or processes",
          "[compiler][import][archives]") {
  const bool processes = GENERATE(false, true);
  const std::string file = GENERATE("model.pt2", "model.pt");
  CAPTURE(processes, file);
  const std::vector<ArchiveFolder> folders = testing::archive_folders();
  const auto folder = std::ranges::find(folders, "resnet", &ArchiveFolder::name);
  REQUIRE(folder != folders.end());
  const ModelFile model = known_model(*folder, file);
  const Program program = compile(
      model, {.inputs = batch_for(model, *folder, 0), .microbatches = folder->microbatches});
  Trainer trainer(processes ? Cluster::spawn(1) : Cluster::local(1),
                  program,
                  one_f_one_b(program.stage_graph(), folder->microbatches),
                  Sgd{.lr = folder->lr});
  Reference reference(program, Sgd{.lr = folder->lr}, {});
  for (int k = 0; k < folder->steps(); ++k) {
    const StepResult step = trainer.step(batch_for(model, *folder, k), {}).get();
    CHECK(step.losses == reference.step(batch_for(model, *folder, k), {}).losses);
    CHECK(step.mean_loss ==
          Catch::Approx(folder->losses[static_cast<std::size_t>(k)]).epsilon(kTolerance).margin(0));
  }
}

TEST_CASE("every archive of torch.export trains as in PyTorch and in plain LibTorch",
          "[compiler][import][archives]") {
  check_all("model.pt2");
}

TEST_CASE("every TorchScript file trains as in PyTorch and in plain LibTorch",
          "[compiler][import][archives]") {
  check_all("model.pt");
}

}  // namespace
}  // namespace stagecraft
