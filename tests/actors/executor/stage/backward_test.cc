/// Checks that the split backward gives the bits of the whole one, and releases the values that
/// only the input half needed.
#include "stagecraft/actors/executor/stage/backward.h"

#include <map>
#include <set>

#include <torch/torch.h>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

struct Net : torch::nn::Module {
  torch::nn::Linear up{nullptr}, down{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  Net() {
    up = register_module("up", torch::nn::Linear(16, 48));
    down = register_module("down", torch::nn::Linear(48, 16));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({16})));
  }
  torch::Tensor forward(torch::Tensor x) { return x + down(torch::gelu(up(norm(x)))); }
};

std::vector<torch::autograd::Edge> edges_of(torch::nn::Module& module) {
  std::vector<torch::autograd::Edge> edges;
  for (const auto& p : module.parameters()) {
    edges.push_back(torch::autograd::impl::gradient_edge(p));
  }
  return edges;
}

void check_equal(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO("gradient " << i);
    CHECK(torch::equal(a[i], b[i]));
  }
}

TEST_CASE("input half and weight half together are the whole backward, bit for bit",
          "[executor][backward]") {
  torch::manual_seed(0);
  Net net;
  const auto edges = edges_of(net);
  const auto x = torch::randn({32, 16});
  const auto gradient = torch::randn({32, 16});
  const auto forward = [&] {
    Saved saved;
    saved.leaves = {x.detach().requires_grad_()};
    saved.outputs = {net.forward(saved.leaves[0])};
    return saved;
  };
  Saved whole = forward();
  const Gradients expected = backward(whole, {gradient}, edges);
  Saved split = forward();
  check_equal(backward_input(split, {gradient}, edges), expected.inputs);
  check_equal(backward_weight(split, edges), expected.parameters);
}

TEST_CASE("a stage whose inputs need no gradient does everything in the weight half",
          "[executor][backward]") {
  torch::manual_seed(0);
  Net net;
  const auto edges = edges_of(net);
  const auto x = torch::randn({32, 16});
  Saved whole, split;
  whole.loss = net.forward(x).pow(2).mean();
  split.loss = net.forward(x).pow(2).mean();
  const Gradients expected = backward(whole, {}, edges);
  CHECK(backward_input(split, {}, edges).empty());
  check_equal(backward_weight(split, edges), expected.parameters);
}

TEST_CASE("what only the input half needed is freed by it", "[executor][backward][memory]") {
  const auto x = torch::randn({8, 8});
  const auto weight = torch::randn({8, 8}).requires_grad_();
  bool kept_alive = true;
  Saved saved;
  saved.leaves = {x.detach().requires_grad_()};
  {
    // sin keeps its input for the gradient that flows to x, and for nothing else.
    auto buffer = torch::from_blob(new float[64](), {8, 8}, [&](void* p) {
      kept_alive = false;
      delete[] static_cast<float*>(p);
    });
    const auto h = saved.leaves[0] * buffer;
    saved.outputs = {torch::matmul(h, weight)};
  }
  const std::vector<torch::autograd::Edge> edges{torch::autograd::impl::gradient_edge(weight)};
  CHECK(kept_alive);
  (void)backward_input(saved, {torch::ones({8, 8})}, edges);
  CHECK_FALSE(kept_alive);
  CHECK(backward_weight(saved, edges)[0].defined());
}

TEST_CASE("an output nobody sends a gradient for contributes nothing", "[executor][backward]") {
  Net net;
  const auto edges = edges_of(net);
  Saved saved;
  saved.leaves = {torch::randn({4, 16}).requires_grad_()};
  saved.outputs = {net.forward(saved.leaves[0])};
  const Gradients gradients = backward(saved, {torch::Tensor()}, edges);
  CHECK_FALSE(gradients.inputs[0].defined());
  CHECK_FALSE(gradients.parameters[0].defined());
}

/// Counts how often the nodes of a graph run, by name.
class NodeCount {
 public:
  explicit NodeCount(const torch::Tensor& root) { visit(root.grad_fn()); }
  int operator[](const std::string& name) const {
    const auto found = counts_->find(name);
    return found == counts_->end() ? 0 : found->second;
  }

 private:
  using Counts = std::map<std::string, int>;
  struct Hook : torch::autograd::FunctionPostHook {
    std::shared_ptr<Counts> counts;
    std::string name;
    Hook(std::shared_ptr<Counts> c, std::string n) : counts(std::move(c)), name(std::move(n)) {}
    torch::autograd::variable_list operator()(const torch::autograd::variable_list& made,
                                              const torch::autograd::variable_list&) override {
      ++(*counts)[name];
      return made;
    }
  };

  void visit(const std::shared_ptr<torch::autograd::Node>& node) {
    if (node == nullptr || !seen_.insert(node.get()).second) {
      return;
    }
    node->add_post_hook(std::make_unique<Hook>(counts_, node->name()));
    for (const auto& edge : node->next_edges()) {
      visit(edge.function);
    }
  }

  std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
  std::set<const torch::autograd::Node*> seen_;
};

TEST_CASE("what cannot compute half its gradients is run by both halves, with the same bits",
          "[executor][backward]") {
  constexpr int kLayers = 2;
  torch::manual_seed(6);
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(8, 8).num_layers(kLayers).bidirectional(true));
  torch::nn::GRU gru(torch::nn::GRUOptions(8, 8).num_layers(kLayers));
  const auto x = torch::randn({5, 3, 8});
  const auto check = [&](auto& rnn, std::int64_t width, const std::string& node, int nodes) {
    const auto edges = edges_of(*rnn);
    const auto gradient = torch::randn({5, 3, width});
    const auto forward = [&] {
      Saved saved;
      saved.leaves = {x.detach().requires_grad_()};
      saved.outputs = {std::get<0>(rnn(saved.leaves[0]))};
      return saved;
    };
    Saved whole = forward();
    const NodeCount in_whole(whole.outputs[0]);
    const Gradients expected = backward(whole, {gradient}, edges);
    CHECK(in_whole[node] == nodes);
    Saved split = forward();
    const NodeCount in_halves(split.outputs[0]);
    check_equal(backward_input(split, {gradient}, edges), expected.inputs);
    CHECK(in_halves[node] == nodes);
    check_equal(backward_weight(split, edges), expected.parameters);
    CHECK(in_halves[node] == 2 * nodes);  // all of its work, each time
  };
  // There is one node for a layer and direction, which makes the gradients of input, state and
  // weights.
  check(lstm, 16, "MkldnnRnnLayerBackward0", 2 * kLayers);
  // A GRU consists of ordinary operators, whose nodes have a mask.
  check(gru, 8, "MkldnnRnnLayerBackward0", 0);
}

}  // namespace
}  // namespace stagecraft
