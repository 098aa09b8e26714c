/// Writes the cost graph of a model as a costs.json:
///
///     write_costs mmt > mmt.json
#include <cstdio>
#include <exception>

#include <fmt/format.h>

#include "stagecraft/examples/costs/cost_models.h"
#include "stagecraft/scheduler/formats/json/costs_json.h"

int main(int argc, char** argv) {
  namespace sc = stagecraft;
  if (argc != 2) {
    fmt::print(stderr, "usage: write_costs MODEL, one of\n");
    for (const sc::examples::CostModel& model : sc::examples::cost_models()) {
      fmt::print(stderr, "  {:<12} {}\n", model.name, model.summary);
    }
    return 2;
  }
  try {
    fmt::print("{}\n", to_json(sc::examples::find_cost_model(argv[1]).costs()));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
