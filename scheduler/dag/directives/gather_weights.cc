#include <map>
#include <tuple>
#include <vector>

#include "stagecraft/scheduler/dag/directives/directives.h"

namespace stagecraft {
namespace {

class Gathers {
 public:
  explicit Gathers(TrainingDag& dag) : dag_(dag) {
    for (const auto& chunks : dag.source.chunks) {
      lent_to_.emplace_back(chunks.size());
    }
    for (std::size_t b = 0; b < dag.buckets.size(); ++b) {
      const DagBucket& bucket = dag.buckets[b];
      for (int c = 0; bucket.lends && c < bucket.chunks; ++c) {
        for (const StageId stage : bucket.stages) {
          lent_to_[stage.index()][static_cast<std::size_t>(bucket.first_chunk + c)].push_back(
              static_cast<int>(b));
        }
      }
    }
  }

  void add() {
    const int nodes = dag_.size();
    for (int n = 0; n < nodes; ++n) {
      const DagNode node = dag_.node(n);
      if (!computes(node.kind) || dag_.is_surplus(node)) {
        continue;
      }
      for (const int bucket : lent_to(node)) {
        const auto [entry, added] =
            gather_of_.try_emplace({bucket, node.kind, node.stage, node.microbatch}, kNone);
        if (added) {
          entry->second = dag_.add(gather_node(dag_, bucket, node));
        }
        dag_.connect(entry->second, n);
      }
    }
    follow_input_halves();
  }

 private:
  [[nodiscard]] const std::vector<int>& lent_to(const DagNode& node) const {
    return lent_to_[node.stage.index()][static_cast<std::size_t>(node.chunk)];
  }

  /// Lets the gathers for a weight half wait for its input half.
  void follow_input_halves() {
    const std::size_t edges = dag_.edges.size();
    for (std::size_t e = 0; e < edges; ++e) {
      const DagEdge edge = dag_.edges[e];
      const DagNode& to = dag_.node(edge.to);
      if (dag_.node(edge.from).kind != DagKind::Input || to.kind != DagKind::Weight) {
        continue;
      }
      for (const int bucket : lent_to(to)) {
        const auto gather = gather_of_.find({bucket, DagKind::Weight, to.stage, to.microbatch});
        if (gather != gather_of_.end()) {
          dag_.connect(edge.from, gather->second, /*data=*/false);
        }
      }
    }
  }

  TrainingDag& dag_;
  std::vector<std::vector<std::vector<int>>> lent_to_;  // by stage, chunk: buckets
  std::map<std::tuple<int, DagKind, StageId, Microbatch>, int> gather_of_;
};

}  // namespace

DagNode gather_node(TrainingDag& dag, int number, DagNode of) {
  constexpr const char* kGatherStream = "gather";
  const DagBucket& bucket = dag.buckets[static_cast<std::size_t>(number)];
  of.serves = computes(of.kind) ? std::optional(of.kind) : std::nullopt;
  of.kind = DagKind::AllGather;
  of.chunk = bucket.first_chunk;
  of.stream = dag.stream_named(bucket.gather_stream.empty() ? kGatherStream : bucket.gather_stream);
  of.bucket = number;
  of.overlap = kNone;
  return of;
}

void gather_weights(TrainingDag& dag) {
  Gathers(dag).add();
}

}  // namespace stagecraft
