/// Tests models that PyTorch wrote, of both kinds of file: they train here as they trained there.
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/actors/reference/reference.h"
#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/import/describe_inputs.h"
#include "stagecraft/compiler/import/load_model.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_h1.h"
#include "stagecraft/tests/compiler/import/archive_folder.h"
#include "stagecraft/tests/compiler/import/trained_tensors.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/equal_costs.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::ArchiveFolder;
using testing::TrainedTensors;

constexpr double kTolerance = 1e-5;  ///< relative, of every loss

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

/// Describes how a training is wrong on purpose.
struct Fault {
  std::string name;
  double rate = 1.0;  ///< a factor of the learning rate
  int dropped = -1;   ///< the microbatch whose gradient is left out
};

/// Trains with LibTorch alone: calls the file's operators one after the other, then plain SGD.
/// Writes the file's own parameters and buffers. Returns the loss of each microbatch.
std::vector<double> plain_losses(const ModelFile& model,
                                 const ArchiveFolder& folder,
                                 const Fault& fault = {}) {
  const SingleThreaded alone;  // as a rank computes
  std::vector<at::Tensor> trained;
  for (const NamedTensor& p : model.parameters) {
    const auto same = [&](const at::Tensor& t) { return t.is_same(p.tensor); };
    if (p.tensor.requires_grad() && std::ranges::none_of(trained, same)) {
      trained.push_back(p.tensor);
    }
  }
  const MicrobatchFiles data = folder.data();
  std::vector<double> losses;
  for (int k = 0; k < folder.steps(); ++k) {
    for (int j = 0; j < folder.microbatches; ++j) {
      const at::Tensor loss = model.workload.forward(data.microbatch(k, j)).at(0);
      if (j != fault.dropped) {
        loss.div(folder.microbatches).backward();
      }
      losses.push_back(loss.item().toDouble());
    }
    const at::NoGradGuard no_grad;
    for (at::Tensor& p : trained) {
      if (p.grad().defined()) {
        p.add_(p.grad(), -folder.lr * fault.rate);
        p.mutable_grad().reset();
      }
    }
  }
  return losses;
}

/// Adds the shapes of the inputs, which a TorchScript file lacks.
ModelFile known_model(const ArchiveFolder& folder, const std::string& file) {
  ModelFile model = load_model((folder.path / file).string());
  describe_inputs(model, folder.data());
  return model;
}

void check_losses(const ArchiveFolder& folder, int step, const std::vector<double>& found) {
  const std::vector<double>& expected = folder.microbatch_losses[static_cast<std::size_t>(step)];
  REQUIRE(found.size() == expected.size());
  for (std::size_t j = 0; j < expected.size(); ++j) {
    CAPTURE(step, j);
    CHECK(found[j] == Catch::Approx(expected[j]).epsilon(kTolerance).margin(0));
  }
}

/// Returns the largest distance of a tensor from PyTorch's, and its name. `found` holds what a
/// training ended with, without the parameters that no operator uses.
std::pair<double, std::string> farthest(const TrainedTensors& reference,
                                        const std::map<std::string, at::Tensor>& found) {
  std::pair<double, std::string> result;
  for (std::size_t i = 0; i < reference.expected().size(); ++i) {
    const std::string& name = reference.expected()[i].name;
    const auto trained = found.find(name);
    const at::Tensor& tensor = trained != found.end() ? trained->second : reference.initial(name);
    result = std::max(result, {reference.distance(i, tensor), name});
  }
  return result;
}

void check_final(const TrainedTensors& reference, const std::map<std::string, at::Tensor>& found) {
  const auto [distance, name] = farthest(reference, found);
  CAPTURE(name);
  CHECK(distance <= 1.0);
}

/// Returns a schedule that divides the backwards of two stages, and follows the graph of more.
Schedule schedule_of(const StageGraph& graph, int microbatches) {
  return graph.size() == 2 ? zb_h1(2, microbatches) : one_f_one_b(graph, microbatches);
}

/// Trains in a pipeline of this many ranks; compares with PyTorch's eager mode and, bit by bit,
/// with one process.
void check_pipeline(const ArchiveFolder& folder,
                    const TrainedTensors& expected,
                    const Program& program) {
  const int stages = program.stage_graph().size();
  CAPTURE(stages);
  Reference reference(program, Sgd{.lr = folder.lr}, {});
  Trainer trainer(Cluster::local(stages),
                  program,
                  schedule_of(program.stage_graph(), folder.microbatches),
                  Sgd{.lr = folder.lr});
  const MicrobatchFiles data = folder.data();
  for (int k = 0; k < folder.steps(); ++k) {
    const std::vector<double> losses = reference.step(data.batch(k), {}).losses;
    CHECK(trainer.step(data.batch(k), {}).get().losses == losses);
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
  check_final(expected, found);
}

/// Trains in one process at one stage; compares bit by bit with LibTorch's own run of the file.
void check_plain(const ArchiveFolder& folder,
                 const ModelFile& model,
                 const TrainedTensors& expected,
                 const Program& program) {
  Reference reference(program, Sgd{.lr = folder.lr}, {});
  const MicrobatchFiles data = folder.data();
  std::vector<double> losses;
  for (int k = 0; k < folder.steps(); ++k) {
    const ReferenceStep step = reference.step(data.batch(k), {});
    losses.insert(losses.end(), step.losses.begin(), step.losses.end());
    check_losses(folder, k, step.losses);
  }
  auto found = by_name(reference.state(), kWeight);
  found.merge(by_name(reference.state(), kBuffer));
  check_final(expected, found);
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
  const Batch batch = folder.data().batch(0);
  const auto compiled = [&](const Cut& cut) {
    return compile(model, {.inputs = batch, .microbatches = folder.microbatches, .cut = cut});
  };
  if (!folder.refused.empty()) {
    CHECK_THAT(refusal([&] { return compiled(AtMarkers()); }, Errc::CompileCapture),
               ContainsSubstring("aten::"));
    return;
  }
  const Program whole = compiled(AtMarkers());
  const TrainedTensors expected(model.parameters, folder.final);
  for (const int stages : {2, 4}) {
    const Balanced cut{.stages = stages, .costs = equal_costs(whole)};
    if (folder.name() == "buffers" && file == "model.pt2") {
      // The first operator writes a value that the last one reads; a trace has this in another
      // form.
      CHECK_THAT(refusal([&] { return compiled(cut); }, Errc::UsageArgument),
                 ContainsSubstring("can be cut into 1 stage,"));
    } else {
      check_pipeline(folder, expected, compiled(cut));
    }
  }
  check_plain(folder, model, expected, whole);
}

void check_all(const std::string& file) {
  const std::vector<ArchiveFolder>& folders = testing::archive_folders();
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
  const std::vector<ArchiveFolder>& folders = testing::archive_folders();
  const auto folder = std::ranges::find(folders, "resnet", &ArchiveFolder::name);
  REQUIRE(folder != folders.end());
  const ModelFile model = known_model(*folder, file);
  const MicrobatchFiles data = folder->data();
  const Program program =
      compile(model, {.inputs = data.batch(0), .microbatches = folder->microbatches});
  Trainer trainer(processes ? Cluster::spawn(1) : Cluster::local(1),
                  program,
                  one_f_one_b(program.stage_graph(), folder->microbatches),
                  Sgd{.lr = folder->lr});
  Reference reference(program, Sgd{.lr = folder->lr}, {});
  for (int k = 0; k < folder->steps(); ++k) {
    const StepResult step = trainer.step(data.batch(k), {}).get();
    CHECK(step.losses == reference.step(data.batch(k), {}).losses);
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

TEST_CASE("a wrong training differs by more than another processor's rounding",
          "[compiler][import][archives]") {
  const std::vector<Fault> faults{{.name = "none"},
                                  {.name = "wrong sign", .rate = -1.0},
                                  {.name = "rate too large by 1e-3", .rate = 1.001},
                                  {.name = "rate too small by 1e-3", .rate = 0.999},
                                  {.name = "dropped microbatch", .dropped = 2}};
  for (const ArchiveFolder& folder : testing::archive_folders()) {
    if (!folder.refused.empty() || !std::filesystem::exists(folder.path / "model.pt2")) {
      continue;
    }
    CAPTURE(folder.name());
    const ModelFile model = known_model(folder, "model.pt2");
    const TrainedTensors expected(model.parameters, folder.final);
    std::vector<NamedTensor> state = model.parameters;
    state.insert(state.end(), model.buffers.begin(), model.buffers.end());
    std::vector<at::Tensor> initial;
    for (const NamedTensor& tensor : state) {
      initial.push_back(tensor.tensor.detach().clone());
    }
    for (const Fault& fault : faults) {
      CAPTURE(fault.name);
      plain_losses(model, folder, fault);
      const auto [distance, name] = farthest(expected, by_name(state, ""));
      CAPTURE(name);
      CHECK((distance <= 1.0) == (fault.name == "none"));
      const at::NoGradGuard no_grad;
      for (std::size_t i = 0; i < state.size(); ++i) {
        state[i].tensor.copy_(initial[i]);
      }
    }
  }
}

}  // namespace
}  // namespace stagecraft
