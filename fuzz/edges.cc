/// Stage edges as in "0-2,1-2": an accepted text can be printed and reads back the same, and a
/// graph without a cycle can be scheduled.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stagecraft/base/error.h"
#include "stagecraft/fuzz/require.h"
#include "stagecraft/fuzz/target.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/formats/text.h"
#include "stagecraft/scheduler/rules/validate.h"

namespace sc = stagecraft;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::optional<sc::StageGraph> read;
  try {
    read = sc::parse_stage_graph({reinterpret_cast<const char*>(data), size});
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() == sc::Errc::ScheduleParse, "edges are refused as such");
    return 0;
  }
  std::string printed;
  for (const auto& [from, to] : read->edges()) {
    printed += std::to_string(from) + '-' + std::to_string(to) + ',';
  }
  const sc::StageGraph again = sc::parse_stage_graph(printed);
  sc::fuzz::require(again.edges() == read->edges() && again.size() == read->size(),
                    "printed edges read back the same");
  const bool acyclic = read->topological_order().has_value();
  sc::fuzz::require(acyclic == read->find_cycle().empty(),
                    "a graph without an order has a cycle to show");
  if (acyclic && read->size() > 0 && read->size() <= 32) {
    sc::fuzz::require(validate(sc::one_f_one_b(*read, 3), *read).empty(),
                      "a graph without a cycle can be scheduled");
  }
  return 0;
}
