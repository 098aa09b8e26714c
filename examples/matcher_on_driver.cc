/// Trains a detector whose boxes are assigned to objects by a matcher, which no tracer takes: it
/// runs on the driver, between head and loss. With an argument the ranks are processes.
#include <algorithm>
#include <iostream>
#include <vector>

#include <torch/torch.h>

#include "stagecraft/stagecraft.h"

namespace sc = stagecraft;

constexpr int kObjects = 4;  // in each image, as many as predicted boxes
/// Returns for each object its box: those with the least sum of distances.
torch::Tensor match(torch::Tensor boxes, torch::Tensor objects) {
  auto distance = torch::cdist(objects, boxes);
  auto assigned = torch::empty({boxes.size(0), kObjects}, torch::kLong);
  for (int64_t image = 0; image < boxes.size(0); ++image) {
    std::vector<int64_t> order{0, 1, 2, 3}, best;
    float least = INFINITY;
    do {
      auto chosen = torch::tensor(order).unsqueeze(1);
      const auto sum = distance[image].gather(1, chosen).sum().item<float>();
      if (sum < least) {
        least = sum;
        best = order;
      }
    } while (std::next_permutation(order.begin(), order.end()));
    assigned[image] = torch::tensor(best);
  }
  return assigned;
}

struct Detector : torch::nn::Module {
  torch::nn::Linear body{register_module("body", torch::nn::Linear(16, 64))};
  torch::nn::Linear head{register_module("head", torch::nn::Linear(64, kObjects * 4))};
  torch::Tensor forward(torch::Tensor x) {
    auto h = sc::stage("body", [&] { return torch::relu(body(x)); });
    return sc::stage("head", [&] { return head(h).view({-1, kObjects, 4}); });
  }
};

torch::Tensor loss(torch::Tensor boxes, torch::Tensor objects) {
  auto assigned = sc::on_driver("matcher", match, boxes.detach(), objects);
  return torch::smooth_l1_loss(boxes.gather(1, assigned.unsqueeze(2).expand({-1, -1, 4})), objects);
}

int main(int argc, char**) {
  torch::manual_seed(0);
  auto images = torch::randn({32, 16});
  auto objects = images.view({32, kObjects, 4}).flip(1) + 1;
  auto program =
      sc::compile(std::make_shared<Detector>(),
                  {.inputs = {images}, .labels = {objects}, .loss = loss, .microbatches = 4});
  auto cluster = argc > 1 ? sc::Cluster::spawn(2) : sc::Cluster::local(2);
  sc::Trainer trainer(cluster, program, "1f1b", sc::AdamW{.lr = 1e-2});
  for (int i = 1; i <= 40; ++i) {
    std::cout << "step " << i << "  loss " << trainer.step(images, objects).get().mean_loss << '\n';
  }
}
