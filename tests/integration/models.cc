#include "stagecraft/tests/integration/models.h"

#include <algorithm>

#include <torch/torch.h>

namespace stagecraft::tests {
namespace {

constexpr std::int64_t kTokens = 16;
constexpr std::int64_t kModelRows = 3;  // of a microbatch

struct Experts : torch::nn::Module {
  explicit Experts(const ModelOptions& o) {
    gate = register_module("gate", torch::nn::Linear(o.width, o.experts));
    up = register_parameter("up", torch::randn({o.experts, o.width, o.width}) * 0.1);
    bias = register_parameter("bias", torch::randn({o.experts, 1, o.width}) * 0.1);
    down = register_parameter("down", torch::randn({o.experts, o.width, o.width}) * 0.1);
  }

  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor gates = torch::softmax(gate->forward(x), -1);
    const torch::Tensor in = torch::einsum("ne,nd->end", {gates, x});
    const torch::Tensor out = stagecraft::region(
        "EP", [&] { return torch::bmm(torch::tanh(torch::baddbmm(bias, in, up)), down); });
    return x + out.sum(0);
  }

  torch::nn::Linear gate{nullptr};
  torch::Tensor up, bias, down;
};

struct Classifier : torch::nn::Module {
  explicit Classifier(const ModelOptions& o) : options(o) {
    embed = register_module("embed", torch::nn::Embedding(kTokens, o.width));
    for (int i = 0; i < o.layers; ++i) {
      layers.push_back(
          register_module("layer" + std::to_string(i), torch::nn::Linear(o.width, o.width)));
    }
    for (int i = 0; o.experts > 0 && i < o.layers; ++i) {
      experts.push_back(
          register_module("experts" + std::to_string(i), std::make_shared<Experts>(o)));
    }
    if (o.statistics || o.spare) {
      norm = register_module("norm", torch::nn::BatchNorm1d(o.width));
    }
    if (o.tied) {
      shared = register_module("shared", torch::nn::Linear(o.width, o.width));
    } else {
      head = register_module("head", torch::nn::Linear(o.width, o.classes));
    }
    if (o.spare) {
      register_parameter("spare", torch::ones({3}));
    }
    if (o.frozen) {
      embed->weight.requires_grad_(false);
      for (int i = 0; i < o.layers / 2; ++i) {
        for (torch::Tensor& weight : layers[static_cast<std::size_t>(i)]->parameters()) {
          weight.requires_grad_(false);
        }
      }
    }
  }

  torch::Tensor run_layers(torch::Tensor x, int first, int last) {
    for (int i = first; i < last; ++i) {
      const torch::Tensor out = layers[static_cast<std::size_t>(i)]->forward(x);
      x = options.linear ? out : x + torch::tanh(out);
      if (options.tied && i != 1) {
        x = x + torch::tanh(shared->forward(x));
      }
      if (options.experts > 0) {
        x = experts[static_cast<std::size_t>(i)]->forward(x);
      }
      if (options.dropout > 0.0) {
        x = torch::dropout(x, options.dropout, /*train=*/true);
      }
    }
    return x;
  }

  torch::Tensor run_stage(int stage, torch::Tensor x) {
    const auto first_layer = [this](int s) { return s * options.layers / options.stages; };
    if (stage == 0) {
      x = embed->forward(x);
    }
    x = run_layers(x, first_layer(stage), first_layer(stage + 1));
    if (stage + 1 == options.stages) {
      if (options.steep) {
        x = x + torch::sqrt(torch::abs(x - x));  // an infinite slope at 0, times 0
      }
      x = options.statistics ? norm->forward(x) : x;
      x = options.tied ? torch::matmul(x, embed->weight.t()) : head->forward(x);
    }
    return x;
  }

  torch::Tensor forward(torch::Tensor tokens) {
    torch::Tensor x = tokens;
    for (int s = 0; s < options.stages; ++s) {
      x = sc_stage(s, x);
    }
    return x;
  }

  torch::Tensor sc_stage(int s, const torch::Tensor& x) {
    return stagecraft::stage("part" + std::to_string(s), [&] { return run_stage(s, x); });
  }

  ModelOptions options;
  torch::nn::Embedding embed{nullptr};
  std::vector<torch::nn::Linear> layers;
  std::vector<std::shared_ptr<Experts>> experts;
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Linear head{nullptr};
  torch::nn::Linear shared{nullptr};
};

Data batch_of(const torch::Tensor& tokens) {
  return {.inputs = {tokens}, .labels = {tokens.remainder(3)}};
}

Cell task(CellKind kind, int stage, int microbatch) {
  return kind == CellKind::Forward ? cells::F(stage, microbatch) : cells::B(stage, microbatch);
}

Schedule two_stages_to_a_row(int stages) {
  const int rows = std::max(1, stages / 2);
  const int each = stages / rows;
  std::vector<Schedule::Row> list(static_cast<std::size_t>(rows));
  for (int r = 0; r < rows; ++r) {
    Schedule::Row& row = list[static_cast<std::size_t>(r)];
    for (const CellKind kind : {CellKind::Forward, CellKind::Backward}) {
      for (int m = 0; m < kMicrobatches; ++m) {
        for (int i = 0; i < each; ++i) {
          const int within = kind == CellKind::Forward ? i : each - 1 - i;
          row.push_back(task(kind, r * each + within, m));
        }
      }
    }
  }
  return {Schedule::Form::List, list};
}

}  // namespace

Program make_program(const ModelOptions& options) {
  torch::manual_seed(1);
  const auto model = std::make_shared<Classifier>(options);
  if (options.type != at::kFloat) {
    model->to(options.type);  // integers too
  }
  const Data example = data(0, options.microbatches);
  return compile(
      model,
      {.inputs = example.inputs,
       .labels = example.labels,
       .loss = [](const at::Tensor& out,
                  const at::Tensor& label) { return torch::cross_entropy_loss(out, label); },
       .microbatches = options.microbatches,
       .recompute = options.recompute             ? Recompute::stages()
                    : !options.recomputed.empty() ? Recompute::named(options.recomputed)
                                                  : Recompute::nothing()});
}

Data data(std::int64_t step, int microbatches) {
  return batch_of((torch::arange(kModelRows * microbatches) * 7 + step * 5 + 3).remainder(kTokens));
}

StepFuture step_of(Trainer& trainer, std::int64_t step) {
  const Data batch = data(step);
  return trainer.step(batch.inputs, batch.labels);
}

Data data_with_bad_token() {
  Data batch = data(0);
  batch.inputs[0].tensor[-1] = kTokens + 1;
  return batch;
}

Schedule make_schedule(const std::string& name, const Program& program) {
  const StageGraph& graph = program.stage_graph();
  if (name == "gpipe") {
    return gpipe(graph, kMicrobatches);
  }
  if (name == "1f1b") {
    return one_f_one_b(graph, kMicrobatches);
  }
  return two_stages_to_a_row(graph.size());
}

bool same_bits(const StateDict& a, const StateDict& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.sizes() == y.second.sizes() &&
           std::memcmp(x.second.contiguous().const_data_ptr(),
                       y.second.contiguous().const_data_ptr(),
                       x.second.nbytes()) == 0;
  });
}

StateDict weights_of(const Reference& reference) {
  constexpr std::string_view kPrefix = "weight:";
  StateDict weights;
  for (const StateTensor& state : reference.state()) {
    if (state.name.starts_with(kPrefix)) {
      weights.emplace_back(state.name.substr(kPrefix.size()), state.tensor);
    }
  }
  const auto name = [](const auto& w) { return w.first; };
  std::ranges::stable_sort(weights, {}, name);
  const auto repeated = std::ranges::unique(weights, {}, name);  // of several stages
  weights.erase(repeated.begin(), repeated.end());
  return weights;
}

StateDict sorted_once(const std::vector<NamedTensor>& named) {
  StateDict all;
  for (const auto& [name, tensor] : named) {
    const auto same = [&](const auto& one) { return one.second.is_same(tensor); };
    if (std::ranges::none_of(all, same)) {  // a tie has its other names as well
      all.emplace_back(name, tensor);
    }
  }
  return without_spare(std::move(all));
}

StateDict weights_of(Trainer& trainer) {
  return sorted_once(trainer.module_state().parameters);
}

StateDict buffers_of(Trainer& trainer) {
  return sorted_once(trainer.module_state().buffers);
}

StateDict without_spare(StateDict weights) {
  std::erase_if(weights, [](const auto& w) { return w.first == "spare"; });
  std::ranges::sort(weights, {}, [](const auto& w) { return w.first; });
  return weights;
}

}  // namespace stagecraft::tests
