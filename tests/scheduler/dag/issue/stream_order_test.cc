#include "stagecraft/scheduler/dag/issue/stream_order.h"

#include <map>
#include <string>
#include <vector>

#include "stagecraft/scheduler/dag/dag.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

/// A graph on one rank, written by hand, whose nodes have names.
class Drawn {
 public:
  Drawn() {
    dag.source = bare_source(StageGraph::chain(1));
    dag.places = {{Rank(0)}};
    dag.streams = {"compute", "ep"};
  }

  /// Adds a chain of nodes; the names that end in a, b, ... are exchanges on the second stream.
  void chain(const std::vector<std::string>& names) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      const bool exchanges = std::islower(names[i].back()) != 0;
      if (!number_.contains(names[i])) {
        number_[names[i]] = dag.add({.kind = exchanges ? DagKind::AllToAll : DagKind::Forward,
                                     .stage = StageId(0),
                                     .place = 0,
                                     .stream = exchanges ? 1 : 0});
      }
      if (i > 0) {
        dag.connect(number_[names[i - 1]], number_[names[i]]);
      }
    }
  }

  std::vector<std::string> named(const std::vector<int>& nodes) const {
    std::vector<std::string> names;
    for (const int n : nodes) {
      for (const auto& [name, number] : number_) {
        if (number == n) {
          names.push_back(name);
        }
      }
    }
    return names;
  }

  TrainingDag dag;

 private:
  std::map<std::string, int> number_;
};

using Names = std::vector<std::string>;

TEST_CASE("chains that may overlap are interleaved chunk by chunk", "[scheduler][dag]") {
  SECTION("a forward and a backward") {
    Drawn drawn;
    drawn.chain({"F1", "Fa", "F2", "Fc", "F3"});
    drawn.chain({"B1", "Ba", "B2", "Bc", "B3"});
    const StreamOrder order = order_streams(drawn.dag).front();
    CHECK(drawn.named(order.streams[0]) == Names{"F1", "B1", "F2", "B2", "F3", "B3"});
    CHECK(drawn.named(order.streams[1]) == Names{"Fa", "Ba", "Fc", "Bc"});
  }
  SECTION("a forward and a backward in halves") {
    Drawn drawn;
    drawn.chain({"F1", "Fa", "F2"});
    drawn.chain({"I1", "Ia", "I2"});
    drawn.chain({"I1", "W1"});
    drawn.chain({"I2", "W2"});
    const StreamOrder order = order_streams(drawn.dag).front();
    CHECK(drawn.named(order.streams[0]) == Names{"I1", "F1", "I2", "F2", "W1", "W2"});
    CHECK(drawn.named(order.streams[1]) == Names{"Ia", "Fa"});
  }
}

}  // namespace
}  // namespace stagecraft
