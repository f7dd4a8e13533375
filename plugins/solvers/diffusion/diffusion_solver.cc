#include <gantry/denoiser.h>
#include <gantry/file_system.h>
#include <gantry/image.h>
#include <gantry/probe.h>
#include <gantry/safetensors.h>
#include <gantry/torch.h>

#include <algorithm>

namespace {

gantry::Parameters sample_keys() {
  gantry::Parameters p;
  p.add<int64_t>("NUM", 10).at_least(1).help("Samples shown of each class; in all, where the model takes no classes.");
  p.add<int64_t>("STEPS", 50).at_least(1).help("Passes of the network from noise to a sample.");
  p.add<double>("GUIDANCE", 2)
      .at_least(0)
      .help("How much more than by itself a class counts; 1 is no guidance. Nothing where the model takes no classes.");
  p.add<std::string>("SAMPLER", "")
      .help(
          "How to go from noise to a sample: euler for a model with PREDICTION flow; ddim, or ddpm, which draws noise "
          "on the "
          "way, with PREDICTION noise. Empty: the model's first.");
  p.add<int64_t>("SEED", 2023)
      .at_least(0)
      .help("Of the noise: the same in every evaluation, so that one sees progress.");
  p.add<std::vector<std::string>>("CLASS_NAMES", {}).help("What to call the classes; empty: their numbers.");
  return p;
}

/// The section as given, or all of its defaults.
gantry::Config sample_args(const gantry::Config& config) {
  if (config.has("SAMPLE_ARGS")) return config.get<gantry::Config>("SAMPLE_ARGS");
  gantry::Config args = gantry::Config::map({}, config.where());
  for (const gantry::Parameter& key : sample_keys().all()) args = args.with(key.name(), key.default_value());
  return args;
}

/// Training and evaluation are those of the base class; an evaluation also makes samples, with the weights and the
/// random numbers that the base class sets for evaluations and puts back.
class DiffusionSolver final : public gantry::BaseSolver {
 public:
  static void declare(gantry::Parameters& p) {
    BaseSolver::declare(p);
    p.section("SAMPLE_ARGS", sample_keys())
        .no_effect_on_result()
        .help("How samples are made when an evaluation has been asked for what is worth looking at.");
    p.add<int64_t>("SAVE_SAMPLES", 0)
        .at_least(0)
        .no_effect_on_result()
        .help(
            "How many samples the last evaluation writes to WORK_DIR/samples/<iteration>.safetensors, all classes "
            "alike.");
  }

  DiffusionSolver(const gantry::Config& config, gantry::Context& context)
      : BaseSolver(config, context),
        args_(sample_args(config)),
        per_class_(args_.get<int64_t>("NUM")),
        saved_(config.get<int64_t>("SAVE_SAMPLES")),
        seed_(args_.get<int64_t>("SEED")),
        class_names_(args_.get<std::vector<std::string>>("CLASS_NAMES")) {
    options_.steps = args_.get<int64_t>("STEPS");
    options_.guidance = args_.get<double>("GUIDANCE");
    options_.sampler = args_.get<std::string>("SAMPLER");
    if (context.dry_run()) {
      options_.steps = std::min<int64_t>(options_.steps, 2);
      per_class_ = 1;
      saved_ = std::min<int64_t>(saved_, 2);
    }
  }

  void construct_model() override {
    BaseSolver::construct_model();
    generator_ = dynamic_cast<gantry::Generator*>(model().get());
    const std::string name = config().get<gantry::Config>("MODEL").name();
    if (generator_ == nullptr)
      throw config().error(
          "MODEL",
          "names " + name + ", which makes no samples: DiffusionSolver needs a model that does, such as Diffusion");
    const std::vector<std::string> offered = generator_->samplers();
    if (!options_.sampler.empty() && std::find(offered.begin(), offered.end(), options_.sampler) == offered.end())
      throw args_.error("SAMPLER", gantry::cat("is ", options_.sampler, ", and the model ", name,
                                               " as it is configured offers: ", gantry::join(offered, ", ")));
    const auto names = static_cast<int64_t>(class_names_.size());
    if (names != 0 && names != generator_->num_classes())
      throw args_.error("CLASS_NAMES", gantry::cat("has ", names, " names, and the model has ",
                                                   generator_->num_classes(), " classes"));
    const bool evaluates =
        data(gantry::Mode::eval) != nullptr &&
        (data(gantry::Mode::train) == nullptr || !config().get<gantry::Interval>("EVAL_INTERVAL").off());
    if (saved_ > 0 && !evaluates)
      throw config().error("SAVE_SAMPLES",
                           "is written by the last evaluation, and there is none: it needs EVAL_DATA and an "
                           "EVAL_INTERVAL above 0");
  }

  gantry::Outputs run_step_eval(const gantry::Batch& batch, int64_t batch_index, int64_t total_iter,
                                int rank) override {
    if (shape_.empty()) shape_ = generator_->sample_shape(batch);
    return BaseSolver::run_step_eval(batch, batch_index, total_iter, rank);
  }

  /// Before the hooks', which look at what there is to see.
  void after_all_iter() override {
    if (solver().mode() == gantry::Mode::eval && !shape_.empty()) {
      if (solver().probes().wanted()) show_samples();
      if (saved_ > 0 && last_evaluation()) save_samples();
    }
    BaseSolver::after_all_iter();
  }

  void after_solve() override {
    // A hook that ends the run because of what an evaluation gave makes that one the last, when it is over.
    if (saved_ > 0 && !wrote_ && solver().exit_reason() == gantry::ExitReason::finish_requested)
      context().logger().warn(
          "no samples were saved: a hook has ended the run after an evaluation that was not the last");
    BaseSolver::after_solve();
  }

 private:
  bool last_evaluation() {
    return data(gantry::Mode::train) == nullptr || solver().iterations() >= solver().total_max_iter() ||
           solver().stop_requested() == gantry::Stop::finish;
  }

  /// Pictures as bytes, [N, C, H, W], on the CPU: the same whenever they are made and for whatever else.
  at::Tensor samples(int64_t count, const at::Tensor& classes) {
    std::vector<int64_t> size = shape_;
    size.insert(size.begin(), count);
    const at::Tensor noise = at::randn(size, at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(seed_)));
    at::manual_seed(static_cast<uint64_t>(seed_));
    const int64_t at_once = data(gantry::Mode::eval)->batch_size();
    std::vector<at::Tensor> pictures;
    for (int64_t begin = 0; begin < count; begin += at_once) {
      const auto part = [&](const at::Tensor& all) {
        return all.defined() ? all.slice(0, begin, begin + at_once).to(context().device()) : all;
      };
      const at::Tensor images = generator_->generate(part(noise), part(classes), options_);
      pictures.push_back(gantry::to_bytes(((images + 1) / 2).cpu()));
    }
    return at::cat(pictures);
  }

  void show_samples() {
    const int64_t num_classes = generator_->num_classes();
    const int64_t channels = shape_.front();
    at::Tensor classes;
    std::vector<std::string> labels;
    for (int64_t c = 0; c < num_classes; ++c)
      labels.insert(labels.end(), static_cast<std::size_t>(per_class_),
                    class_names_.empty() ? std::to_string(c) : class_names_[static_cast<std::size_t>(c)]);
    if (num_classes > 0) classes = at::arange(num_classes, at::kLong).repeat_interleave(per_class_);
    const at::Tensor pictures = samples(num_classes > 0 ? num_classes * per_class_ : per_class_, classes);
    if (channels == 1 || channels == 3)
      solver().probes().image("samples", pictures, std::move(labels));
    else
      solver().probes().tensor("samples", pictures);
  }

  void save_samples() {
    const int64_t num_classes = generator_->num_classes();
    at::Tensor classes;
    if (num_classes > 0) classes = at::arange(saved_, at::kLong).remainder(num_classes);
    const at::Tensor pictures = samples(saved_, classes);
    if (!context().world().is_main()) return;
    std::vector<std::pair<std::string, at::Tensor>> tensors = {{"img", pictures}};
    if (classes.defined()) tensors.emplace_back("label", classes);
    const std::string name = gantry::cat("samples/", solver().iterations(), ".safetensors");
    gantry::PutTo file = context().files().put_to(context().work_dir() + "/" + name);
    gantry::write_safetensors(file.path(), tensors, {{"format", "pt"}});
    file.commit();
    wrote_ = true;
    context().logger().info(gantry::cat("wrote ", name, ": ", saved_, " samples"));
  }

  gantry::Config args_;
  gantry::SampleOptions options_;
  int64_t per_class_, saved_, seed_;
  std::vector<std::string> class_names_;
  gantry::Generator* generator_ = nullptr;  ///< the model
  bool wrote_ = false;                      ///< samples, to a file
  std::vector<int64_t> shape_;              ///< of a sample; empty before the first batch
};

}  // namespace

GANTRY_PLUGIN("gantry-diffusion-solver", GANTRY_VERSION);
GANTRY_SOLVER(DiffusionSolver, "DiffusionSolver", "Trains a model that makes images, and shows what it makes.");
