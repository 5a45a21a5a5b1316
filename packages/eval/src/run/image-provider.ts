import { DockerProvider, type DockerOptions, type Sandbox, type SandboxProvider } from '@treeward/sandbox';
import { taskName, taskOfRollout } from './names.js';

/**
 * Containers of the image that a task brings: a rollout's sandbox and those that grade it are told by their ids. What belongs to no
 * task (a harness that warms up) runs in the first image.
 */
export class ImageProvider implements SandboxProvider {
  readonly name = 'docker';
  readonly #providers: Map<string, DockerProvider>;
  readonly #first: DockerProvider;

  /** @param images ids of images by id of the task; at least one */
  constructor(images: ReadonlyMap<string, string>, options: Omit<DockerOptions, 'image'> = {}) {
    const byImage = new Map(
      [...images.values()].map((image) => [image, new DockerProvider({ ...options, image })]),
    );
    this.#providers = new Map([...images].map(([task, image]) => [taskName(task), byImage.get(image)!]));
    [this.#first] = byImage.values() as unknown as [DockerProvider];
  }

  probe(): ReturnType<SandboxProvider['probe']> {
    return this.#first.probe();
  }

  open(options: Parameters<SandboxProvider['open']>[0]): Promise<Sandbox> {
    const task = taskOfRollout(options.id);
    return ((task !== null && this.#providers.get(task)) || this.#first).open(options);
  }

  sweep(): ReturnType<SandboxProvider['sweep']> {
    return this.#first.sweep();
  }
}
