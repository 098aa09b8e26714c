/// What does it cost to load a model? This program measures capture and the forward that it
/// watches, a balanced cut, and loading a file and reading its bytes.
///
///   capture [MODEL.pt2]
///
/// Each figure is printed with its reference, which is measured in turns in the same run.
#include "stagecraft/compiler/capture/capture.h"

#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include <fmt/format.h>
#include <torch/torch.h>

#include "stagecraft/base/median.h"
#include "stagecraft/bench/hardware.h"
#include "stagecraft/bench/seconds_of.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/examples/models/llama.h"
#include "stagecraft/scheduler/planners/balance/balanced_cut.h"
#include "stagecraft/stagecraft.h"

namespace stagecraft::bench::capture {
namespace {

constexpr int kRounds = 7;
constexpr int kVocabulary = 96;

/// Returns the medians of two kinds of work, run in turns after one round of each that does not
/// count.
template <class One, class Other>
std::pair<double, double> in_turns(One&& one, Other&& other) {
  std::vector<double> of_one, of_other;
  one();
  other();
  for (int round = 0; round < kRounds; ++round) {
    of_one.push_back(seconds_of(one));
    of_other.push_back(seconds_of(other));
  }
  return {median(of_one), median(of_other)};
}

struct Setting {
  examples::Llama model;
  torch::Tensor tokens, targets;
  Workload workload;

  explicit Setting(const examples::LlamaOptions& options, std::int64_t rows) : model(options) {
    tokens = torch::randint(kVocabulary, {rows, options.sequence});
    targets = torch::randint(kVocabulary, {rows, options.sequence});
    workload.forward = [this](const Tensors& in) { return Tensors{model->forward(in[0])}; };
    workload.loss = [](const Tensors& out, const Tensors& labels) {
      return examples::next_token_loss(out[0], labels[0]);
    };
    for (const auto& item : model->named_parameters()) {
      workload.parameters.push_back({item.key(), item.value()});
    }
    for (const auto& item : model->named_buffers()) {
      workload.buffers.push_back({item.key(), item.value()});
    }
  }

  [[nodiscard]] torch::Tensor loss() const {
    return workload.loss(workload.forward({tokens}), {targets});
  }
};

void measure_capture() {
  const Setting setting({.vocabulary = kVocabulary,
                         .layers = 32,
                         .dim = 256,
                         .heads = 4,
                         .ffn = 688,
                         .sequence = 128,
                         .stages = 1},
                        /*rows=*/1);
  std::size_t operators = 0;
  const auto [eager, captured] = in_turns(
      [&] { (void)setting.loss(); },
      [&] {
        operators =
            stagecraft::capture(setting.workload, {setting.tokens}, {setting.targets}).nodes.size();
      });
  fmt::print(
      "capture of {} operators: {:.1f} ms, an eager forward {:.1f} ms; goal 3 forwards and "
      "50 ms, {:.1f} ms\n",
      operators,
      captured * 1e3,
      eager * 1e3,
      (3 * eager + 0.05) * 1e3);
}

void measure_cut() {
  constexpr int kOperators = 2000;
  constexpr int kStages = 8;
  std::mt19937 random(1);
  const auto some = [&] { return static_cast<double>(1 + random() % 1000); };
  std::vector<CutItem> items(kOperators);
  for (CutItem& item : items) {
    item = {.time = some(), .bytes = 1, .crossing = some()};
  }
  const auto [exact, loose] = in_turns([&] { (void)balanced_cut(items, kStages); },
                                       [&] {
                                         (void)balanced_cut(items,
                                                            kStages,
                                                            std::numeric_limits<double>::infinity(),
                                                            /*slack=*/0.03);
                                       });
  fmt::print(
      "balanced cut of {} operators into {} stages: {:.1f} ms, with 3 % of slack {:.1f} ms; "
      "goal 50 ms\n",
      kOperators,
      kStages,
      exact * 1e3,
      loose * 1e3);
}

void measure_import(const std::string& path) {
  std::size_t bytes = 0;
  const auto [reading, loading] = in_turns(
      [&] {
        std::ifstream file(path, std::ios::binary | std::ios::ate);
        std::string content(static_cast<std::size_t>(file.tellg()), '\0');
        file.seekg(0).read(content.data(), static_cast<std::streamsize>(content.size()));
        bytes = content.size();
      },
      [&] { (void)load_model(path); });
  fmt::print("import of {} ({:.0f} MB): {:.3f} s, reading it {:.3f} s; goal 1 s more for 100 MB\n",
             path,
             static_cast<double>(bytes) / 1e6,
             loading,
             reading);
}

}  // namespace

int run(int argc, char** argv) {
  set_own_thread_count(1);
  fmt::print("{}\n", hardware());
  measure_capture();
  measure_cut();
  for (int i = 1; i < argc; ++i) {
    measure_import(argv[i]);
  }
  return 0;
}

}  // namespace stagecraft::bench::capture
