/// Runs objects of two classes on ranks: one turns text into tensors and one reads them. The ranks
/// are threads, or with any argument processes. Tensors go from rank to rank; main() gets a figure.

#include <iostream>

#include <torch/torch.h>

#include "stagecraft/stagecraft.h"

namespace sc = stagecraft;

class Tokenizer {
 public:
  explicit Tokenizer(int64_t length) : length_(length) {}

  torch::Tensor encode(const std::string& text) {
    auto ids = torch::zeros({length_}, torch::kLong);
    for (int64_t i = 0; i < std::min<int64_t>(length_, text.size()); ++i) {
      ids[i] = static_cast<unsigned char>(text[i]);
    }
    return ids;
  }
  using Remote = sc::Remote<Tokenizer(int64_t), &Tokenizer::encode>;

 private:
  int64_t length_;
};

class Judge {
 public:
  double score(const torch::Tensor& ids) { return (ids == ' ').sum().item<double>(); }
  void note(double score) { total_ += score; }
  double total() const { return total_; }
  using Remote = sc::Remote<Judge(), &Judge::score, &Judge::note, &Judge::total>;

 private:
  double total_ = 0.0;
};

int main(int argc, char** argv) {
  if (sc::is_worker(argc, argv)) {
    return sc::worker_main(argc, argv, sc::types<Tokenizer, Judge>());
  }
  auto cluster =
      argc > 1 ? sc::Cluster::spawn(2, {.program = "/proc/self/exe"}) : sc::Cluster::local(2);
  auto tokenizer = cluster.spawn<Tokenizer>(sc::on(sc::Rank(0)), 64);
  auto judge = cluster.spawn<Judge>(sc::on(sc::Rank(1)));

  for (std::string text : {"a schedule one can read", "proved before launch", "explained"}) {
    sc::Future<torch::Tensor> ids = tokenizer.call<&Tokenizer::encode>(text);
    sc::Future<double> score = judge.call<&Judge::score>(ids);  // rank 0 sends ids to rank 1
    judge.call<&Judge::note>(score);                            // stays on rank 1
  }
  std::cout << "spaces: " << judge.call<&Judge::total>().get() << '\n';
}
