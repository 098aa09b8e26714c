/// Tests that checkpoints do not depend on the strategy: whoever wrote one, anyone goes on from it.
#include <map>

#include <fmt/format.h>
#include <torch/torch.h>

#include "stagecraft/actors/trainer/state/checkpoint.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"

namespace stagecraft::tests {
namespace {

/// A way to train the same model. Ways with the same number of copies add gradients in one order.
struct Way {
  std::string name;
  int stages = 1;
  int copies = 1;
  Schedule schedule;
};

Schedule built(const std::string& builder, int devices, int microbatches) {
  return build_schedule(builder, {.devices = devices, .microbatches = microbatches});
}

/// Returns the schedule with copies of its rows: row r of copy q is on rank q * rows + r.
Schedule copied(const Schedule& rows, int copies) {
  const std::size_t count = rows.rows().size();
  std::string text = "@place";
  for (std::size_t r = 0; r < count; ++r) {
    text += fmt::format(" {}=", r);
    for (std::size_t q = 0; q < static_cast<std::size_t>(copies); ++q) {
      text += fmt::format("{}{}", q == 0 ? "" : ",", q * count + r);
    }
  }
  return Schedule::parse(text + "\n" + to_string(rows));
}

std::vector<Way> ways() {
  const int m = kMicrobatches;
  return {
      {"one process", 1, 1, built("gpipe", 1, m)},
      {"2 stages", 2, 1, built("1f1b", 2, m)},
      {"4 stages", 4, 1, built("1f1b", 4, m)},
      {"4 stages on 2 ranks", 4, 1, built("interleaved", 2, m)},
      {"2 copies", 1, 2, copied(built("gpipe", 1, m / 2), 2)},
      {"2 copies of 2 stages", 2, 2, copied(built("1f1b", 2, m / 2), 2)},
      {"2 copies of 4 stages on 2 ranks", 4, 2, copied(built("zb-v", 2, m / 2), 2)},
      {"4 copies", 1, 4, copied(built("gpipe", 1, m / 4), 4)},
  };
}

struct WayRun {
  explicit WayRun(const Way& way)
      : cluster(Cluster::local(Layout::of(way.schedule).ranks())),
        trainer(cluster,
                make_program({.stages = way.stages, .dropout = 0.2, .statistics = false}),
                way.schedule,
                AdamW{.lr = 1e-2},
                {.clip = 1.0, .seed = 9}) {}

  void train(std::int64_t until) {
    while (trainer.steps() < until) {
      (void)step_of(trainer, trainer.steps()).get();
    }
  }

  Cluster cluster;
  Trainer trainer;
};

/// Everything that a checkpoint has, by name: weights, optimizer state, buffers.
struct Everything {
  std::int64_t step = 0;
  std::map<std::string, at::Tensor> tensors;
};

Everything saved_by(Trainer& trainer, const std::string& path) {
  trainer.save(path);
  const Checkpoint checkpoint = read_checkpoint(path);
  Everything all{.step = checkpoint.step, .tensors = {}};
  for (const StateTensor& state : checkpoint.tensors) {
    all.tensors.emplace(state.name, state.tensor);
  }
  return all;
}

/// Returns the largest difference over all tensors; infinite if names, shapes or steps differ.
double distance(const Everything& a, const Everything& b) {
  double largest = a.step == b.step && a.tensors.size() == b.tensors.size() ? 0.0 : INFINITY;
  for (const auto& [name, tensor] : a.tensors) {
    const auto found = b.tensors.find(name);
    if (found == b.tensors.end() || found->second.sizes() != tensor.sizes()) {
      return INFINITY;
    }
    if (tensor.numel() > 0) {
      const at::Tensor apart = (tensor - found->second).abs().to(torch::kDouble);
      largest = std::max(largest, apart.max().item<double>());
    }
  }
  return largest;
}

TEST_CASE("every strategy goes on from the checkpoint of every other",
          "[integration][checkpoint][strategies]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  const std::string after = folder.path() + "/after.ckpt";
  const std::vector<Way> all = ways();
  std::vector<std::unique_ptr<WayRun>> runs;
  for (const Way& way : all) {
    runs.push_back(std::make_unique<WayRun>(way));
  }
  for (std::size_t w = 0; w < all.size(); ++w) {
    WayRun writer(all[w]);
    writer.train(2);
    const Everything written = saved_by(writer.trainer, path);
    CHECK(written.step == 2);
    CHECK(written.tensors.size() > 3 * 10);  // weights, and two tensors of AdamW for each
    writer.train(4);
    const Everything unbroken = saved_by(writer.trainer, after);
    CHECK(distance(unbroken, written) > 1e-3);
    for (std::size_t r = 0; r < all.size(); ++r) {
      INFO(all[r].name << " goes on from a checkpoint of " << all[w].name);
      Trainer& reader = runs[r]->trainer;
      reader.load(path);
      CHECK(distance(saved_by(reader, after), written) == 0.0);
      runs[r]->train(4);
      const double apart = distance(saved_by(reader, after), unbroken);
      CHECK(apart <= (all[r].copies == all[w].copies ? 0.0 : 1e-6));
    }
  }
}

}  // namespace
}  // namespace stagecraft::tests
